"""Int8 convolutions that pad with a value are convolutions that pad with zeros, plus a constant at the border."""

from __future__ import annotations

import numpy as np
import pytest
from contractions import Problem
from hypothesis import given, settings
from hypothesis import strategies as st
from lowered_network import parse_module
from quantized_contractions import quantized_convolution_text, random_bytes

from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.passes.pipeline import run_passes


def check(problem: Problem, value: int) -> str:
    """Compare the results before and after; returns the IR."""
    inputs = {"x": random_bytes(problem.input, "ui8"), "r": random_bytes(problem.output, "i8", 1)}
    module, context = parse_module(quantized_convolution_text(problem, "ui8", residual="i8", padding_value=value))
    before = interpret(module, context, inputs)["y"]
    run_passes(module, context, "fold-padding-value")
    np.testing.assert_array_equal(interpret(module, context, inputs)["y"], before)
    return str(module)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_window(data: st.DataObject) -> None:
    def pair(low: int, high: int) -> tuple[int, int]:
        return data.draw(st.tuples(st.integers(low, high), st.integers(low, high)))

    problem = Problem((2, 3, *pair(5, 9)), (4, 3, *pair(1, 3)), pair(1, 3), pair(1, 2), pair(0, 3), pair(0, 3))
    assert "padding_value" not in check(problem, data.draw(st.integers(1, 255)))


@pytest.mark.parametrize("shape", [(1, 8, 12), (1, 8, 4, 5, 6)])
def test_other_ranks(shape: tuple[int, ...]) -> None:
    problem = Problem(shape, (8, 8, *[3] * (len(shape) - 2)), pre=(1,), post=(2,))
    assert "padding_value" not in check(problem, 100)


def test_groups_are_left() -> None:
    assert "padding_value" in check(Problem((1, 8, 6, 6), (8, 1, 3, 3), pre=(1,), groups=8), 100)


def test_warpgroups_multiply_what_is_padded_with_a_value() -> None:
    problem = Problem((2, 32, 9, 7), (40, 32, 3, 3), pre=(1,), post=(1,))
    text = quantized_convolution_text(problem, "ui8", padding_value=113, tactic="cuda_wgmma:64x64s3")
    inputs = {"x": random_bytes(problem.input, "ui8"), "r": random_bytes(problem.output, "i8", 1)}
    module, context = parse_module(text)
    want = interpret(module, context, inputs)["y"]
    steps = (
        "fold-padding-value,strength-reduce-conversions,convert-fused-to-kernel{target=cuda},map-parallel-to-threads"
    )
    run_passes(module, context, steps)
    assert "warpgroup_mma" in str(module)
    np.testing.assert_array_equal(run_plan(module, context, inputs)["y"], want)
