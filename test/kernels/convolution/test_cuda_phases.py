"""Deconvolutions with strides on GPUs as one launch for all remainders, against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from contractions import DTYPES, TOLERANCE, Problem, convolution_text
from gpu_kernels import check_on_threads, kernel_names, run_on_threads
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PROBLEMS = {
    "whole steps": Problem((1, 16, 6, 7), (16, 12, 2, 2), stride=(2,), transposed=True),
    "groups": Problem(
        (2, 16, 6, 7), (16, 12, 3, 3), stride=(2, 1), pre=(1,), post=(0, 1), groups=2, transposed=True, residual=True
    ),
    "volumes": Problem(
        (2, 8, 4, 3, 5), (8, 9, 3, 3, 3), stride=(2,), pre=(1,), post=(1,), transposed=True, residual=True
    ),
    "dilated": Problem((1, 8, 5, 5), (8, 16, 4, 4), (3, 2), (1, 2), (2, 1), (1, 0), transposed=True, residual=True),
    "signals": Problem((2, 12, 9), (12, 20, 5), stride=(4,), pre=(1,), transposed=True),
}


def check(problem: Problem, element: str, tactic: str = "cuda_phases") -> list[str]:
    """Compare a deconvolution; returns the kernels that it became."""
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    text = convolution_text(problem, element)
    return kernel_names(check_on_threads(text, inputs, tactic=tactic, tolerance=TOLERANCE[element]))


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_one_launch_for_all_remainders(name: str, element: str) -> None:
    assert check(PROBLEMS[name], element) == ["convolution"]


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(("choice", "launches"), [("32x32c2", 1), ("32x32p2", 2)])
def test_sums_in_parts(choice: str, launches: int, element: str) -> None:
    problem = Problem((1, 48, 5, 4), (48, 16, 4, 4), stride=(2,), pre=(1,), post=(1,), transposed=True, residual=True)
    assert len(check(problem, element, f"cuda_phases:{choice}")) == launches


def test_an_input_of_floats_is_rounded_as_it_is_read() -> None:
    problem, rng = PROBLEMS["volumes"], np.random.default_rng(0)
    x = rng.standard_normal(problem.input, np.float32)
    r = rng.standard_normal(problem.output, np.float32).astype(np.float16)
    found = [
        run_on_threads(convolution_text(problem, "f16", given), {"x": x.astype(kind), "r": r}, "cuda_phases")
        for given, kind in (("f32", np.float32), ("", np.float16))
    ]
    np.testing.assert_array_equal(found[0], found[1])


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_deconvolution(data: st.DataObject) -> None:
    def draw(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    windows, strides = (draw(1, 5), draw(1, 4)), (draw(2, 4), draw(1, 3))
    crops = [(draw(0, min(2, size - 1)), draw(0, min(2, size - 1))) for size in windows]
    channels = draw(1, 20)
    problem = Problem(
        (draw(1, 2), channels, draw(2, 6), draw(2, 6)),
        (channels, draw(4, 20), *windows),
        stride=strides,
        pre=tuple(low for low, _ in crops),
        post=tuple(high for _, high in crops),
        transposed=True,
        residual=data.draw(st.booleans()),
    )
    if min(problem.output[2:]) > 0:
        check(problem, data.draw(st.sampled_from(["f32", "f16"])), "cuda")
