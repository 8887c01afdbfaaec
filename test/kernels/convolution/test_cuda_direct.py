"""Convolutions of few channels by multiply-adds of each thread, against the reference."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from contractions import DTYPES, TOLERANCE, Problem, convolution_text
from gpu_kernels import check_on_threads, kernel_names
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

PROBLEMS = {
    "3 x 3": Problem((2, 8, 13, 37), (24, 8, 3, 3)),
    "padding": Problem((1, 3, 9, 12), (17, 3, 5, 3), pre=(2, 1), post=(2, 1), residual=True),
    "stride": Problem((2, 3, 15, 14), (16, 3, 3, 3), stride=(2,), pre=(1,), post=(1,)),
    "dilation": Problem((1, 4, 12, 13), (8, 4, 3, 3), dilation=(2, 3), pre=(2,), post=(1,), residual=True),
    "volumes": Problem((1, 3, 6, 7, 9), (20, 3, 3, 3, 3)),
    "padded volumes": Problem((2, 2, 4, 5, 6), (9, 2, 3, 2, 3), (1, 2, 1), pre=(1,), post=(1,), residual=True),
    "pixels": Problem((1, 16, 5, 9), (33, 16, 1, 1)),
}


def check(problem: Problem, element: str, choice: str) -> list[str]:
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    text = convolution_text(problem, element)
    module = check_on_threads(text, inputs, tactic=f"cuda_direct:{choice}", tolerance=TOLERANCE[element])
    assert "kernel.outer_product" in {op.name for op in module.walk()}
    return kernel_names(module)


@pytest.mark.parametrize("choice", ["4x16", "4x8", "2x16", "2x8"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_rows_and_channels_of_a_thread(name: str, choice: str) -> None:
    assert check(PROBLEMS[name], "f32", choice) == ["convolution"]


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["padding", "volumes"])
def test_halves_are_added_up_in_single_precision(name: str, element: str) -> None:
    check(PROBLEMS[name], element, "2x8")


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_window(data: st.DataObject) -> None:
    def pair(low: int, high: int) -> tuple[int, int]:
        return data.draw(st.tuples(st.integers(low, high), st.integers(low, high)))

    window, channels, results = pair(1, 4), data.draw(st.integers(1, 6)), data.draw(st.integers(1, 20))
    problem = Problem(
        (data.draw(st.integers(1, 2)), channels, *pair(4, 11)),
        (results, channels, *window),
        *(pair(1, 2), pair(1, 2), pair(0, 2), pair(0, 2)),
        residual=data.draw(st.booleans()),
    )
    batch, _, *image = problem.output
    assume(min(problem.output) > 0)
    assume(batch * prod(image) > 4)  # fewer pixels are left to a warp for each result
    few = results <= 4  # which threads have narrower blocks for
    check(problem, "f32", data.draw(st.sampled_from(["4x4", "2x4"] if few else ["4x8", "2x8"])))
