"""Trials lower an op as the build would, and are fed with numbers that take as much power as real ones."""

from __future__ import annotations

import numpy as np
import pytest
from contractions import product_text
from lowered_network import parse_module

from mlirt.builder.cubin import Cubin
from mlirt.builder.tactics.early_compiler import cuda_plan_code
from mlirt.builder.tactics.sites import find_sites
from mlirt.builder.tactics.trial import Trial, feeds, trials
from mlirt.dialects.target import Target

_SIZES = ((512, 256), (256, 512), (512, 512))


def trials_of(text: str, target: Target, only: str) -> list[Trial]:
    module, context = parse_module(text)
    (site,) = find_sites(module, context, target)
    names = [one.name for one in site.candidates if one.name.startswith(only)][:2]
    assert names
    made = trials(site.ops[0], names, context, target, {})
    assert [one.candidate for one in made] == names
    return made


@pytest.mark.parametrize("element", ["f16", "f32"])
def test_what_the_matrix_units_may_read_is_known(element: str) -> None:
    target = Target("cuda", features=frozenset({"tf32"}))
    assert trials_of(product_text(*_SIZES, element, (False, True)), target, "cuda_wgmma")


def test_bytes_are_noise_and_other_integers_zero() -> None:
    text = """
    func.func @main(%x: tensor<64x256xi8> {trt.name = "x"}, %w: tensor<128x256xi8> {trt.name = "w"})
        -> (tensor<64x128xi32> {trt.name = "y"}) {
      %y = fused.matmul %x, %w {transpose_rhs = true, access = []}
          : (tensor<64x256xi8>, tensor<128x256xi8>) -> tensor<64x128xi32> {
      ^bb0(%acc: i32):
        fused.yield %acc : i32
      }
      func.return %y : tensor<64x128xi32>
    }"""
    trial = trials_of(text, Target("cuda"), "cuda_wgmma")[0]
    cubins = {name: {"sm_90a": Cubin(b"\x7fELF", 32, 0)} for name in trial.sources}
    plan = trial.plan(1, cuda_plan_code(cubins, "sm_90a"))
    arrays = feeds(plan, trial.shapes, {})
    assert [array.dtype for array in arrays] == [np.int8, np.int8]
    assert all(array.min() < -16 and array.max() > 16 for array in arrays)
