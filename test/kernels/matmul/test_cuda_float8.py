"""Products of 8-bit floats on a GPU: warpgroups multiply them as they are, plain loops read them one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowered_network import parse_module

from mlirt.dialects.float8 import rounded
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.passes.pipeline import check_ir, run_passes


def product_of(rows: int, columns: int, depth: int, *, flipped: bool, tactic: str) -> str:
    """The product of 8-bit floats, scaled and rounded to such ones again."""
    right = f"{columns}x{depth}" if flipped else f"{depth}x{columns}"
    x, w, y = f"tensor<{rows}x{depth}xf8E4M3FN>", f"tensor<{right}xf8E4M3FN>", f"tensor<{rows}x{columns}xf32>"
    return f"""
    func.func @main(%x: {x} {{trt.name = "x"}}, %w: {w} {{trt.name = "w"}}) -> ({y} {{trt.name = "y"}}) {{
      %y = fused.matmul %x, %w {{transpose_rhs = {str(flipped).lower()}, fused.tactic = "{tactic}"}}
          : ({x}, {w}) -> {y} {{
      ^bb0(%acc: f32):
        %scale = arith.constant 0.125 : f32
        %scaled = arith.mulf %acc, %scale : f32
        fused.yield %scaled : f32
      }}
      func.return %y : {y}
    }}"""


@pytest.mark.parametrize("tactic", ["cuda_wgmma:64x64s3", "cuda_wgmma:128x64s3", "cuda_wgmma:64x64s2c2", "generic"])
def test_tactics(tactic: str) -> None:
    noise = np.random.default_rng(0)
    inputs: dict[str, Any] = {"x": rounded(noise.normal(size=(70, 272))), "w": rounded(noise.normal(size=(88, 272)))}
    module, context = parse_module(product_of(70, 88, 272, flipped=True, tactic=tactic))
    want = interpret(module, context, inputs)["y"]
    run_passes(module, context, "convert-fused-to-kernel{target=cuda},map-parallel-to-threads")
    check_ir(module)
    np.testing.assert_allclose(run_plan(module, context, inputs)["y"], want, rtol=1e-5, atol=1e-5 * np.abs(want).max())
    assert ("kernel.warpgroup_mma e4m3" in str(module)) == tactic.startswith("cuda_wgmma")


def test_matrices_that_lie_across_the_depth_take_plain_loops() -> None:
    module, context = parse_module(
        product_of(70, 88, 272, flipped=False, tactic="generic").replace(', fused.tactic = "generic"', "")
    )
    run_passes(module, context, "convert-fused-to-kernel{target=cuda}")
    assert "warpgroup" not in str(module)
