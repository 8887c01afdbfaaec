"""Convolutions as products on GPUs against the reference: strides, dilation, padding, groups, ranks, deconvolution."""

from __future__ import annotations

import numpy as np
import pytest
from contractions import DTYPES, PROBLEMS, TOLERANCE, Problem, convolution_text
from gpu_kernels import check_on_threads, kernel_names, run_on_threads
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def check(problem: Problem, element: str, tactic: str = "cuda_implicit_gemm") -> list[str]:
    """Compare a convolution; returns the kernels that it became."""
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    text = convolution_text(problem, element)
    return kernel_names(check_on_threads(text, inputs, tactic=tactic, tolerance=TOLERANCE[element]))


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_kinds_of_convolutions(name: str, element: str) -> None:
    assert check(PROBLEMS[name], element)[0] == "convolution"


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_wider_pixels_are_rounded_as_they_are_read(name: str, element: str) -> None:
    """What is multiplied is the same as behind a launch that rounds, to the bit."""
    problem, rng = PROBLEMS[name], np.random.default_rng(0)
    x, r = rng.standard_normal(problem.input, np.float32), rng.standard_normal(problem.output).astype(DTYPES[element])
    found = [
        run_on_threads(convolution_text(problem, element, source), {"x": given, "r": r}, "cuda_implicit_gemm")
        for source, given in (("f32", x), ("", x.astype(DTYPES[element])))
    ]
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("element", ["f32", "f16"])
def test_long_sums_are_split(element: str) -> None:
    problem = Problem((1, 96, 7, 7), (40, 96, 3, 3), pre=(1,), post=(1,), residual=True)
    assert check(problem, element, "cuda_implicit_gemm:32x32p3") == ["convolution", "convolution_sum"]


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("choice", ["32x32c2", "64x64c4", "32x32c3"])
@pytest.mark.parametrize("images", [1, 3])
def test_parts_of_sums_in_a_cluster(choice: str, images: int, element: str) -> None:
    """One launch; each block adds up what all blocks of its cluster have kept, for some places of the tile."""
    problem = Problem((images, 96, 7, 5), (40, 96, 3, 3), pre=(1,), post=(1,), residual=True)
    assert check(problem, element, f"cuda_implicit_gemm:{choice}") == ["convolution"]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_window(data: st.DataObject) -> None:
    def draw(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    groups, window = draw(1, 2), (draw(1, 3), draw(1, 3))
    dilation, pads = (draw(1, 2), draw(1, 2)), tuple((draw(0, 2), draw(0, 2)) for _ in range(2))
    sizes = [max(draw(1, 9), d * (w - 1) + 1) for d, w in zip(dilation, window, strict=True)]
    channels, rows = draw(1, 20), draw(8, 24)
    problem = Problem(
        (draw(1, 2), channels * groups, *sizes),
        (rows * groups, channels, *window),
        stride=(draw(1, 3), draw(1, 3)),
        dilation=dilation,
        pre=tuple(low for low, _ in pads),
        post=tuple(high for _, high in pads),
        groups=groups,
        residual=data.draw(st.booleans()),
    )
    check(problem, data.draw(st.sampled_from(["f32", "f16"])), tactic="")
