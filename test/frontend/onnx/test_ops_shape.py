"""Reshape and its kin against onnxruntime, and what stays symbolic."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import (
    assert_agrees,
    check_node,
    imported_text,
    model_of,
    numbers,
    one_node,
    run_onnxruntime,
    small_integers,
    tensor_info,
)

import mlirt
from mlirt.errors import InvalidInputError, InvalidModelError


@pytest.mark.parametrize("shape", [[2, 12], [0, -1], [-1], [1, 0, 2, -1]])
def test_reshape(shape: list[int]) -> None:
    check_node("Reshape", [numbers(2, 3, 4), np.array(shape)], opset=14, constants=[1])


def test_reshape_keeps_zeros_where_asked() -> None:
    check_node("Reshape", [numbers(0, 3), np.array([3, 0])], opset=14, constants=[1], allowzero=1)


def test_reshape_at_run_time_names_its_dimensions() -> None:
    model, feeds = one_node("Reshape", [numbers(2, 6), np.array([3, 4])])
    assert 'tensor<?x?xf32, #trt.dims<["node1", "node2"]>>' in imported_text(model)
    assert_agrees(model, feeds)


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_flatten(axis: int) -> None:
    check_node("Flatten", [numbers(2, 3, 4)], opset=13, axis=axis)


def test_squeeze_and_unsqueeze_by_attribute_and_by_input() -> None:
    check_node("Squeeze", [numbers(1, 3, 1)], opset=11, axes=[0])
    check_node("Squeeze", [numbers(1, 3, 1), np.array([-1])], opset=13, constants=[1])
    check_node("Squeeze", [numbers(1, 3, 1)], opset=13)
    check_node("Unsqueeze", [numbers(3, 4)], opset=11, axes=[0, 3])
    check_node("Unsqueeze", [numbers(3, 4), np.array([-1, 1])], opset=13, constants=[1])


def squeezing(*after: onnx.NodeProto) -> onnx.ModelProto:
    nodes = [helper.make_node("Squeeze", ["x"], ["s"], name="q"), *after]
    return model_of(nodes, {"x": ("float32", [1, "n"])}, ["y"])


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_squeeze_of_unknown_lengths_inside_a_network_has_the_rank_that_makes_sense(target: str) -> None:
    """A softmax of a vector needs a length other than 1; the first part of a vector comes from a length of 1."""
    whole = squeezing(helper.make_node("Softmax", ["s"], ["y"], axis=0))
    first = model_of(
        [helper.make_node("Squeeze", ["x"], ["s"], name="q"), helper.make_node("Gather", ["s", "first"], ["y"])],
        {"x": ("float32", ["n", 4])},
        ["y"],
        {"first": np.array([0, 1])},
    )
    first.graph.output[0].CopyFrom(tensor_info("y", "float32", [2]))
    for model, fitting, other in ((whole, (1, 3), (1, 1)), (first, (1, 4), (2, 4))):
        x = numbers(*fitting)
        engine = mlirt.compile(model, target=target)
        np.testing.assert_allclose(engine.run({"x": x})["y"], run_onnxruntime(model, {"x": x})[0], rtol=1e-5)
        with pytest.raises(InvalidInputError, match=r"Squeeze \(node 'q'\): the engine was built for an axis . whose"):
            engine.run({"x": numbers(*other)})


def test_squeeze_of_unknown_lengths_follows_the_declared_rank_of_the_output() -> None:
    model = model_of(
        [helper.make_node("Squeeze", ["x"], ["s"]), helper.make_node("MatMul", ["s", "w"], ["y"])],
        {"x": ("float32", ["n", 1, 4])},
        ["y"],
        {"w": numbers(4, 2)},
    )
    assert 'tensor<2xf32> {trt.name = "y"}' in imported_text(model)
    model.graph.output[0].CopyFrom(tensor_info("y", "float32", ["n", 2]))
    assert 'tensor<?x2xf32, #trt.dims<["n", "2"]>> {trt.name = "y"}' in imported_text(model)


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("length", [1, 3])
def test_squeeze_of_unknown_lengths_on_the_way_out(target: str, length: int) -> None:
    scaled = helper.make_node("Constant", [], ["four"], value_float=4.0), helper.make_node("Mul", ["s", "four"], ["m"])
    model = squeezing(*scaled, helper.make_node("Sigmoid", ["m"], ["y"]))
    x = numbers(1, length)
    (want,) = run_onnxruntime(model, {"x": x})
    found = mlirt.compile(model, target=target).run({"x": x})["y"]
    assert found.shape == want.shape == (() if length == 1 else (3,))
    np.testing.assert_allclose(found, want, rtol=1e-5)


def test_transpose() -> None:
    check_node("Transpose", [numbers(2, 3, 4)], opset=13, perm=[1, 2, 0])
    check_node("Transpose", [numbers(2, 3, 4)], opset=13)


@pytest.mark.parametrize(("start", "end"), [(0, None), (1, None), (-1, None), (0, -1), (1, 2), (-9, 9)])
def test_shape(start: int, end: int | None) -> None:
    attributes: dict[str, Any] = {"start": start} | ({} if end is None else {"end": end})
    check_node("Shape", [numbers(2, 3, 4)], opset=15, **attributes)


def test_expand_and_tile() -> None:
    check_node("Expand", [numbers(3, 1), np.array([2, 1, 4])], opset=13, constants=[1])
    check_node("Expand", [numbers(2, 3), np.array([1])], opset=13, constants=[1])
    check_node("Tile", [small_integers(2, 3), np.array([2, 3])], opset=13, constants=[1])


def test_dropout_does_nothing() -> None:
    model, _ = one_node("Dropout", [numbers(2, 3)], opset=10)
    assert "func.return %in0" in imported_text(model)
    check_node("Dropout", [numbers(2, 3)], opset=13, outputs=2)


def test_a_reshape_that_loses_elements_is_refused() -> None:
    model, _ = one_node("Reshape", [numbers(2, 3), np.array([4, -1])], constants=[1])
    with pytest.raises(
        InvalidModelError, match=r"Reshape \(node 'node'\): 6 elements cannot take the shape \['4', '-1'\]"
    ):
        imported_text(model)


def shape_arithmetic() -> list[object]:
    """(batch, channels, -1) out of the shape of x, as exporters write it."""
    return [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["b"]),
        helper.make_node("Unsqueeze", ["b", "first"], ["b1"]),
        helper.make_node("Concat", ["b1", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["y"], name="flat"),
    ]


def test_shape_arithmetic_becomes_symbols() -> None:
    constants = {"zero": np.array(0), "first": np.array([0]), "rest": np.array([3, -1])}
    model = model_of(shape_arithmetic(), {"x": ("float32", ["n", 3, "h", 4])}, ["y"], constants)  # pyright: ignore[reportArgumentType]
    text = imported_text(model)
    assert 'reshape_dims = #trt.dims<["n", "3", "4*h"]>' in text
    assert "trt.shape" not in text
    assert "trt.gather" not in text
    assert_agrees(model, {"x": numbers(2, 3, 5, 4)})


def test_a_shape_is_data_too() -> None:
    constants = {"zero": np.array(0), "first": np.array([0]), "rest": np.array([3, -1])}
    model = model_of(shape_arithmetic(), {"x": ("float32", ["n", 3, "h", 4])}, ["y", "target"], constants)  # pyright: ignore[reportArgumentType]
    assert "trt.shape" in imported_text(model)
    assert_agrees(model, {"x": numbers(2, 3, 5, 4)})
