"""Reductions and positions of extremes against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx_models import assert_agrees, check_node, model_of, numbers, small_integers

REDUCTIONS = ["Sum", "Prod", "Max", "Min", "Mean", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"]


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes_by_attribute(kind: str, keepdims: int) -> None:
    x = np.abs(numbers(2, 3, 4)) + 0.1
    check_node(f"Reduce{kind}", [x], opset=11, axes=[0, -1], keepdims=keepdims)
    check_node(f"Reduce{kind}", [x], opset=11, keepdims=keepdims)


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("noop", [0, 1])
def test_axes_by_input(kind: str, noop: int) -> None:
    x = np.abs(numbers(2, 3, 4)) + 0.1
    check_node(f"Reduce{kind}", [x, np.array([1])], opset=18, constants=[1], noop_with_empty_axes=noop)
    if kind in ("Sum", "Prod", "Max", "Min", "Mean"):  # onnxruntime also skips the pointwise part of the others
        check_node(f"Reduce{kind}", [x], opset=18, noop_with_empty_axes=noop)


def test_the_sum_took_its_axes_as_an_input_earlier() -> None:
    check_node("ReduceSum", [numbers(2, 3), np.array([1])], opset=13, constants=[1], keepdims=0)


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
def test_arg_extremes_break_ties(op_type: str, keepdims: int, last: int) -> None:
    x = small_integers(3, 5, high=3, dtype="float32")
    check_node(op_type, [x], opset=13, axis=1, keepdims=keepdims, select_last_index=last)


def test_the_last_extreme_of_any_number_of_elements() -> None:
    node = helper.make_node("ArgMax", ["x"], ["y"], axis=1, select_last_index=1)
    model = model_of([node], {"x": ("float32", [3, "n"])}, ["y"])
    for length in (1, 5, 9):
        assert_agrees(model, {"x": small_integers(3, length, high=3, dtype="float32")})
