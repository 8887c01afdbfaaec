"""Deconvolutions by warpgroups as one launch for all remainders, against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from contractions import DTYPES, TOLERANCE, Problem, channels_last_text, planes_text
from deconvolutions import DECONVOLUTIONS
from gpu_kernels import check_on_threads, kernel_names
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp


def check(problem: Problem, element: str, choice: str, features: str = "") -> ModuleOp:
    """Compare a deconvolution of channels that are innermost; gives the kernels."""
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    text = channels_last_text(problem, element)
    text = text.replace("{stride", f'{{fused.tactic = "cuda_wgmma_phases:{choice}", stride', 1)
    tolerance = 2e-3 if features else TOLERANCE[element]
    module = check_on_threads(text, inputs, tolerance=tolerance, features=features)
    assert "kernel.warpgroup_mma" in {op.name for op in module.walk()}
    return module


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("name", DECONVOLUTIONS)
def test_one_launch_for_all_remainders(name: str, element: str) -> None:
    names = kernel_names(check(DECONVOLUTIONS[name], element, "64x64s3"))
    assert names.count("convolution") == 1


@pytest.mark.parametrize("choice", ["128x128s3", "64x32s4", "64x64s3t", "128x64s3d"])
def test_tiles_of_other_sizes(choice: str) -> None:
    """Persistent blocks as well, for which the remainders of some rows follow each other."""
    for name in ("padding", "uneven"):
        check(DECONVOLUTIONS[name], "f16", choice)


def test_floats_that_may_be_rounded() -> None:
    check(DECONVOLUTIONS["padding"], "f32", "64x64s3", "tf32")


def test_results_in_planes() -> None:
    problem = DECONVOLUTIONS["a row more"]
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}
    text = planes_text(problem, "f16").replace("{stride", '{fused.tactic = "cuda_wgmma_phases:64x64s3", stride', 1)
    check_on_threads(text, inputs, tolerance=TOLERANCE["f16"])


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_deconvolution(data: st.DataObject) -> None:
    def draw(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    windows, strides = (draw(1, 5), draw(1, 4)), (draw(1, 4), draw(1, 3))
    crops = [(draw(0, min(2, size - 1)), draw(0, min(2, size - 1))) for size in windows]
    channels = 8 * draw(1, 9)
    problem = Problem(
        (draw(1, 2), channels, draw(3, 6), draw(3, 6)),
        (channels, draw(8, 40), *windows),
        stride=strides,
        pre=tuple(low for low, _ in crops),
        post=tuple(high for _, high in crops),
        transposed=True,
        residual=data.draw(st.booleans()),
    )
    steps = [-(-length // stride) for length, stride in zip(problem.output[2:], strides, strict=True)]
    assume(min(problem.output[2:]) > 0 and problem.input[0] * steps[0] * steps[1] > 9)
    check(problem, data.draw(st.sampled_from(["f16", "bf16"])), data.draw(st.sampled_from(["64x32s3", "128x64s3"])))
