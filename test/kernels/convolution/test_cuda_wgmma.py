"""Convolutions by warpgroups on tensors with the channels innermost, against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contractions import DTYPES, TOLERANCE, Problem, channels_last_text, convolution_text
from gpu_kernels import check_on_threads
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from lowered_network import parse_module
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp
from mlirt.passes.pipeline import run_passes


def check(problem: Problem, choice: str, element: str = "f16") -> ModuleOp:
    """Compare a convolution in one configuration."""
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    name = f'{{fused.tactic = "cuda_wgmma:{choice}", stride'
    text = channels_last_text(problem, element).replace("{stride", name, 1)
    return check_on_threads(text, inputs, tolerance=TOLERANCE[element])


def ops(module: ModuleOp) -> list[str]:
    return [op.name for func in module.body.block.ops if isinstance(func, FuncOp) for op in func.walk()]


KINDS = {
    "3 x 3": (Problem((2, 64, 9, 7), (40, 64, 3, 3), pre=(1,), post=(1,), residual=True), "64x64s3"),
    "stride, channels beyond a tile": (Problem((2, 72, 9, 7), (40, 72, 3, 3), stride=(2,), pre=(1,)), "64x64s3c2"),
    "everything uneven": (
        Problem((1, 16, 12, 10), (72, 16, 3, 2), (1, 2), (2, 1), pre=(1, 0), post=(2, 1), residual=True),
        "128x64s3",
    ),
    "an odd number of channels": (
        Problem((2, 64, 9, 7), (75, 64, 3, 3), pre=(1,), post=(1,), residual=True),
        "64x64s3t",
    ),
    "channels in fours": (Problem((1, 16, 9, 7), (44, 16, 3, 3), residual=True), "64x64s3"),
    "pairs of channels, a shared depth": (Problem((1, 144, 5, 7), (70, 144, 3, 3), residual=True), "64x64s3c2"),
    "pixels as rows": (Problem((3, 64, 5, 7), (64, 64, 1, 1), residual=True), "64x64s3"),
    "residuals ahead": (Problem((3, 64, 5, 7), (72, 64, 1, 1), residual=True), "64x64s3te2"),
    "residuals ahead of 3 x 3": (
        Problem((2, 64, 9, 7), (40, 64, 3, 3), pre=(1,), post=(1,), residual=True),
        "128x64s3e2",
    ),
    "some pixels": (Problem((3, 64, 5, 7), (64, 64, 1, 1), stride=(2,)), "64x64s3"),
    "one dimension": (Problem((1, 8, 30), (10, 8, 5), dilation=(2,), pre=(4,), post=(4,)), "64x32s3"),
    "three dimensions": (
        Problem((1, 8, 5, 6, 7), (9, 8, 2, 3, 2), stride=(1, 2, 1), pre=(0, 1, 1), post=(1, 1, 0)),
        "64x32s3",
    ),
    "groups": (Problem((2, 64, 9, 7), (64, 32, 3, 3), pre=(1,), post=(1,), groups=2, residual=True), "64x32s3"),
    "groups narrower than a tile": (
        Problem((2, 72, 7, 9), (120, 24, 3, 2), stride=(2, 1), pre=(1,), post=(1,), groups=3, residual=True),
        "128x64s3",
    ),
    "groups wider than a tile": (Problem((1, 48, 9, 8), (144, 24, 3, 3), pre=(1,), groups=2), "64x32s3t"),
    "groups of pixels": (Problem((3, 96, 5, 7), (96, 48, 1, 1), groups=2), "64x64s3"),
    "groups whose depth is shared": (Problem((1, 144, 5, 7), (128, 72, 3, 3), pre=(1,), groups=2), "64x64s3c2"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_kinds_of_convolutions(kind: str, element: str) -> None:
    problem, choice = KINDS[kind]
    found = ops(check(problem, choice, element))
    assert "kernel.warpgroup_mma" in found
    assert ("kernel.load_window" in found) == (kind not in ("pixels as rows", "residuals ahead"))


@pytest.mark.parametrize("kind", ["3 x 3", "stride, channels beyond a tile", "pixels as rows", "some pixels", "groups"])
def test_floats_that_may_be_rounded(kind: str) -> None:
    problem, choice = KINDS[kind]
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    text = channels_last_text(problem, "f32").replace("{stride", f'{{fused.tactic = "cuda_wgmma:{choice}", stride', 1)
    assert "kernel.warpgroup_mma" in ops(check_on_threads(text, inputs, tolerance=2e-3, features="tf32"))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_window(data: st.DataObject) -> None:
    def pair(low: int, high: int) -> tuple[int, int]:
        return data.draw(st.tuples(st.integers(low, high), st.integers(low, high)))

    window, sizes = pair(1, 3), pair(4, 9)
    channels = 8 * data.draw(st.integers(1, 10))
    problem = Problem(
        (data.draw(st.integers(1, 2)), channels, *sizes),
        (data.draw(st.integers(8, 70)), channels, *window),
        *(pair(1, 2), pair(1, 2), pair(0, 2), pair(0, 2)),
        residual=data.draw(st.booleans()),
    )
    batch, _, *lengths = problem.output
    assume(min(lengths) > 0 and batch * lengths[0] * lengths[1] > 4)
    check(problem, data.draw(st.sampled_from(["64x32s3", "64x64s2c2", "128x64s3"])))


FEW_CHANNELS = {
    "a picture": Problem((2, 3, 23, 21), (40, 3, 7, 7), stride=(2,), pre=(3,), post=(3,)),
    "one channel, uneven": Problem((1, 1, 12, 30), (16, 1, 3, 5), pre=(1, 2), post=(1, 2), residual=True),
    "lines of two tiles": Problem((2, 12, 9, 12), (24, 12, 3, 5), stride=(1, 2), pre=(1,), post=(1,)),
    "a film": Problem((1, 3, 5, 16, 17), (16, 3, 3, 3, 3), stride=(1, 2, 2), pre=(1,), post=(1,)),
}


@pytest.mark.parametrize("kind", FEW_CHANNELS)
@pytest.mark.parametrize("last", [False, True])
def test_few_channels_are_joined_along_rows(kind: str, last: bool) -> None:
    check_rows(kind, (channels_last_text if last else convolution_text)(FEW_CHANNELS[kind], "f16"), np.float16)


@pytest.mark.parametrize("kind", FEW_CHANNELS)
def test_the_copy_of_rows_rounds_single_precision(kind: str) -> None:
    check_rows(kind, convolution_text(FEW_CHANNELS[kind], "f16", "f32"), np.float32)


def check_rows(kind: str, text: str, given_as: type[np.floating[Any]]) -> None:
    problem = FEW_CHANNELS[kind]
    rng = np.random.default_rng(0)
    inputs = {"x": rng.standard_normal(problem.input).astype(given_as)}
    inputs["r"] = rng.standard_normal(problem.output).astype(np.float16)
    text = text.replace("{stride", '{fused.tactic = "cuda_wgmma_rows:64x32s3", stride', 1)
    module = check_on_threads(text, inputs, tolerance=TOLERANCE["f16"])
    assert "kernel.load_window" in ops(module)


@pytest.mark.parametrize(
    "problem",
    [
        Problem((1, 12, 9, 9), (16, 12, 3, 3)),  # pixels do not start at multiples of 16 bytes
        Problem((1, 24, 9, 9), (24, 4, 3, 3), groups=6),  # fewer results of a group than a thread has neighbours
        Problem((1, 16, 9, 9), (16, 8, 2, 2), stride=(2,), groups=2, transposed=True),
    ],
)
def test_others_are_left_to_other_tactics(problem: Problem) -> None:
    module, context = parse_module(channels_last_text(problem, "f16"))
    run_passes(module, context, "convert-fused-to-kernel{target=cuda}")
    assert "kernel.warpgroup_mma" not in ops(module)


def test_channels_must_be_neighbours() -> None:
    module, context = parse_module(convolution_text(Problem((1, 64, 8, 8), (64, 64, 3, 3)), "f16"))
    run_passes(module, context, "convert-fused-to-kernel{target=cuda}")
    assert "kernel.warpgroup_mma" not in ops(module)
