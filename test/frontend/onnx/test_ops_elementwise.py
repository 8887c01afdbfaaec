"""Pointwise ops of several operands against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import check_node, imported_text, numbers, one_node, small_integers

from mlirt.errors import InvalidModelError


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_arithmetic_broadcasts(op_type: str, dtype: str) -> None:
    arrays = [small_integers(2, 3, 4, low=-9, dtype=dtype), small_integers(4, low=1, seed=1, dtype=dtype)]
    check_node(op_type, arrays, opset=14)
    check_node(op_type, arrays[::-1] if op_type != "Div" else arrays, opset=14)


@pytest.mark.parametrize("op_type", ["Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"])
def test_comparisons(op_type: str) -> None:
    check_node(op_type, [small_integers(3, 1, high=3), small_integers(4, high=3, seed=1)], opset=16)


@pytest.mark.parametrize("op_type", ["And", "Or", "Xor"])
def test_logic(op_type: str) -> None:
    check_node(op_type, [np.array([True, False])[:, None], np.array([True, False])], opset=7)


@pytest.mark.parametrize("op_type", ["Sum", "Max", "Min", "Mean"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_variadic(op_type: str, count: int) -> None:
    check_node(op_type, [numbers(3, 4), numbers(4, seed=1), numbers(3, 1, seed=2)][:count], opset=13)


@pytest.mark.parametrize(("base", "exponent"), [("float32", "float32"), ("float32", "int64"), ("int64", "float32")])
def test_power_keeps_the_type_of_the_base(base: str, exponent: str) -> None:
    x, y = small_integers(4, low=1, high=5, dtype=base), small_integers(4, high=3, seed=1, dtype=exponent)
    check_node("Pow", [x, y], opset=15)


def test_a_square_is_a_product() -> None:
    model, _ = one_node("Pow", [numbers(4), np.array(2, np.float32)], constants=[1])
    assert "trt.elementwise prod %in0, %in0" in imported_text(model)


@pytest.mark.parametrize("fmod", [0, 1])
def test_modulo(fmod: int) -> None:
    arrays = [np.array([-5, 5, -5, 5]), np.array([3, 3, -3, -3])]
    check_node("Mod", arrays, opset=13, fmod=fmod)


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts(direction: str) -> None:
    x, y = np.array([16, 4, 1, 255], np.uint8), np.array([1, 2, 3, 0], np.uint8)
    check_node("BitShift", [x, y], opset=11, direction=direction)


def test_where_aligns_three_operands() -> None:
    check_node("Where", [np.array([True, False, True]), numbers(2, 3), numbers(1, seed=1)], opset=16)


def test_old_broadcast_by_axis() -> None:
    model, feeds = one_node("Add", [numbers(2, 3, 4), numbers(3, seed=1)], opset=6, broadcast=1, axis=1)
    assert "tensor<3xf32>) -> tensor<3x1xf32>" in imported_text(model)
    assert list(feeds) == ["in0", "in1"]


def test_different_element_types_are_refused() -> None:
    model, _ = one_node("Add", [numbers(3), numbers(3, dtype="float64")])
    with pytest.raises(InvalidModelError, match="C1: operation sum has incompatible input types f32 and f64"):
        imported_text(model)
