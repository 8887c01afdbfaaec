"""Constants, fills and ranges, and that large ones take no room in the text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx_models import assert_agrees, check_node, imported_text, model_of, numbers, one_node

from mlirt.errors import InvalidModelError, UnsupportedError


@pytest.mark.parametrize(
    "attributes",
    [
        {"value": numpy_helper.from_array(numbers(2, 3))},
        {"value_float": 1.5},
        {"value_floats": [1.0, 2.0]},
        {"value_int": 3},
        {"value_ints": [1, 2]},
    ],
)
def test_constant(attributes: dict[str, Any]) -> None:
    check_node("Constant", [], opset=13, **attributes)


def test_strings_are_refused() -> None:
    model, _ = one_node("Constant", [], value_string="hello")
    with pytest.raises(UnsupportedError, match="a constant given as value_string"):
        imported_text(model)


def test_a_large_fill_is_one_element() -> None:
    fill = helper.make_node("ConstantOfShape", ["s"], ["w"], value=numpy_helper.from_array(np.array([2.0], np.float32)))
    nodes = [fill, helper.make_node("MatMul", ["x", "w"], ["y"])]
    model = model_of(nodes, {"x": ("float32", [1, 4096])}, ["y"], {"s": np.array([4096, 4096])})
    assert "dense<2.000000e+00> : tensor<4096x4096xf32>" in imported_text(model)


def test_a_fill_of_dynamic_dimensions() -> None:
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("ConstantOfShape", ["s"], ["y"])]
    model = model_of(nodes, {"x": ("float32", ["n", 3])}, ["y"])
    assert_agrees(model, {"x": numbers(2, 3)})


@pytest.mark.parametrize("bounds", [(0, 10, 3), (10, 0, -4), (3, 3, 1), (0.5, 2.1, 0.25)])
def test_range(bounds: tuple[float, float, float]) -> None:
    kind = np.float32 if isinstance(bounds[0], float) else np.int64
    check_node("Range", [np.array(bound, kind) for bound in bounds], opset=11, constants=[0, 1, 2])


def test_a_range_of_dynamic_length() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Range", ["zero", "n", "one"], ["y"]),
    ]
    model = model_of(nodes, {"x": ("float32", ["n", 3])}, ["y"], {"zero": np.array(0), "one": np.array(1)})
    assert "trt.fill linspace alpha" in imported_text(model)
    assert_agrees(model, {"x": numbers(5, 3)})


@pytest.mark.parametrize(("from_axis", "to_axis", "step", "kind"), [(0, 1, 1, 7), (1, 0, -2, 7), (0, 1, 3, 1)])
def test_a_range_between_dynamic_lengths_has_no_size_of_its_own(
    from_axis: int, to_axis: int, step: int, kind: int
) -> None:
    """Such as the places of the words behind those in a cache: the shapes of the inputs tell how many there are."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "from"], ["a"]),
        helper.make_node("Gather", ["s", "to"], ["b"]),
        helper.make_node("Cast", ["a"], ["start"], to=kind),
        helper.make_node("Cast", ["b"], ["limit"], to=kind),
        helper.make_node("Range", ["start", "limit", "step"], ["y"]),
    ]
    steps = np.array(step, helper.tensor_dtype_to_np_dtype(kind))
    constants = {"from": np.array(from_axis), "to": np.array(to_axis), "step": steps}
    model = model_of(nodes, {"x": ("float32", ["n", "m"])}, ["y"], constants)
    assert "trt.size" not in imported_text(model)
    for shape in ((3, 8), (8, 3), (4, 4), (2, 3)):
        assert_agrees(model, {"x": numbers(*shape)})


def test_absurd_ranges_are_refused() -> None:
    model, _ = one_node("Range", [np.array(0), np.array(1 << 60), np.array(1)], opset=11, constants=[0, 1, 2])
    with pytest.raises(InvalidModelError, match="it would make 1152921504606846976 elements"):
        imported_text(model)


def test_eye_like() -> None:
    check_node("EyeLike", [numbers(3, 4)], opset=9, k=1, dtype=6)


@pytest.mark.parametrize("k", [-1, 0, 2])
def test_eye_like_a_matrix_of_any_size(k: int) -> None:
    node = helper.make_node("EyeLike", ["x"], ["y"], k=k)
    assert_agrees(model_of([node], {"x": ("float32", ["n", "m"])}, ["y"]), {"x": numbers(3, 5)})
