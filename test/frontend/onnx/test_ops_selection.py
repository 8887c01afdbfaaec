"""Ops that rank, mark or accumulate against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx_models import assert_agrees, check_node, imported_text, model_of, numbers, one_node, small_integers

from mlirt.errors import InvalidModelError


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, -1])
def test_top_k(largest: int, axis: int) -> None:
    x = small_integers(4, 5, high=4, dtype="float32")
    check_node("TopK", [x, np.array([3])], opset=11, constants=[1], outputs=2, largest=largest, axis=axis)
    check_node("TopK", [x], opset=9, outputs=2, k=2, axis=axis)


def test_top_k_of_too_many_is_refused() -> None:
    model, _ = one_node("TopK", [numbers(3), np.array([4])], opset=11, constants=[1], outputs=2)
    with pytest.raises(InvalidModelError, match="expected k from 0 to the length 3, got 4"):
        imported_text(model)


@pytest.mark.parametrize("opset", [11, 13])
def test_hardmax(opset: int) -> None:
    check_node("Hardmax", [small_integers(2, 3, 4, high=3, dtype="float32")], opset=opset, axis=1)


@pytest.mark.parametrize("axis", [0, -1, 1])
def test_one_hot(axis: int) -> None:
    inputs = [np.array([[0, -1], [3, 9]]), np.array(4), np.array([2.0, 5.0], np.float32)]
    check_node("OneHot", inputs, opset=11, constants=[1], axis=axis)


@pytest.mark.parametrize("rows", [1, 4])
def test_a_depth_that_is_a_length(rows: int) -> None:
    """As in networks that count how many boxes each picture of a batch has."""
    nodes = [
        helper.make_node("Shape", ["x"], ["depth"], start=0, end=1),
        helper.make_node("OneHot", ["i", "depth", "values"], ["y"], axis=0),
    ]
    inputs = {"x": ("float32", ["n", 2]), "i": ("int64", ["m"]), "values": ("float32", [2])}
    feeds = {"x": numbers(rows, 2), "i": np.array([0, 3, -1, 4]), "values": np.array([-1, 2], np.float32)}
    assert_agrees(model_of(nodes, inputs, ["y"]), feeds)


def test_a_depth_that_the_run_computes() -> None:
    inputs = [np.array([[0, -1], [3, 9]]), np.array(4), np.array([2.0, 5.0], np.float32)]
    check_node("OneHot", inputs, opset=11, constants=[], axis=-1)


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, -1, 2])
@pytest.mark.parametrize("constants", [[1], []])
def test_triangles(upper: int, k: int | None, constants: list[int]) -> None:
    arrays = [numbers(2, 4, 5)] + ([] if k is None else [np.array(k)])
    check_node("Trilu", arrays, opset=14, constants=constants, upper=upper)


def test_a_triangle_from_a_diagonal_that_is_a_length() -> None:
    """What a decoder may see: the tokens before it, and all of the cache."""
    nodes = [helper.make_node("Shape", ["cache"], ["k"]), helper.make_node("Trilu", ["x", "k"], ["y"], upper=0)]
    model = model_of(nodes, {"x": ("bool", ["t", "u"]), "cache": ("float32", ["p"])}, ["y"])
    assert_agrees(model, {"x": np.ones((3, 5), bool), "cache": numbers(2)})


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_cumulative_sum(exclusive: int, reverse: int) -> None:
    check_node("CumSum", [numbers(3, 4), np.array(-1)], opset=14, constants=[1], exclusive=exclusive, reverse=reverse)
