"""Activation, unary, elementwise, scale, select and conversion against NumPy (tensorrt-features.md#1.1, 1.10, 1.14,
1.23, 1.33 ..).
"""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import constant, new_network, output_of

import mlirt as trt
from mlirt.errors import InvalidModelError

X = np.linspace(-3, 3, 24, dtype=np.float32).reshape(1, 2, 3, 4)


def network_with_x(dtype: trt.DataType = trt.float32) -> tuple[trt.INetworkDefinition, trt.ITensor]:
    network = new_network()
    return network, network.add_input("x", dtype, X.shape)


@pytest.mark.parametrize("kind", trt.ActivationType)
def test_activation(kind: trt.ActivationType) -> None:
    """tensorrt-features.md#1.1a, 1.1b."""
    formulas = {
        "RELU": np.maximum(X, 0),
        "SIGMOID": 1 / (1 + np.exp(-X)),
        "TANH": np.tanh(X),
        "LEAKY_RELU": np.where(X >= 0, X, 0.3 * X),
        "ELU": np.where(X >= 0, X, 0.3 * np.expm1(X)),
        "SELU": 0.7 * np.where(X > 0, X, 0.3 * np.exp(X) - 0.3),
        "SOFTSIGN": X / (1 + np.abs(X)),
        "SOFTPLUS": 0.3 * np.log(np.exp(0.7 * X) + 1),
        "CLIP": np.clip(X, 0.3, 0.7),
        "HARD_SIGMOID": np.clip(0.3 * X + 0.7, 0, 1),
        "SCALED_TANH": 0.3 * np.tanh(0.7 * X),
        "THRESHOLDED_RELU": np.where(X > 0.3, X, 0),
    }
    network, x = network_with_x()
    layer = network.add_activation(x, kind)
    layer.alpha, layer.beta = 0.3, 0.7
    assert (layer.alpha, layer.beta) == (0.3, 0.7)
    np.testing.assert_allclose(output_of(network, layer, {"x": X}), formulas[kind.name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [kind for kind in trt.UnaryOperation if kind.name != "NOT"])
def test_unary(kind: trt.UnaryOperation) -> None:
    """tensorrt-features.md#1.42a."""
    special = {"RECIP": np.reciprocal, "NEG": np.negative, "ASIN": np.arcsin, "ACOS": np.arccos, "ATAN": np.arctan}
    special |= {"ASINH": np.arcsinh, "ACOSH": np.arccosh, "ATANH": np.arctanh, "ROUND": np.rint}
    values = {"ACOSH": np.abs(X) + 1}.get(kind.name, np.abs(X) / 4 + 0.125)
    network, x = network_with_x()
    found = output_of(network, network.add_unary(x, kind), {"x": values})
    if kind.name == "ERF":
        from math import erf

        expected = np.vectorize(erf)(values)
    else:
        expected = (special[kind.name] if kind.name in special else getattr(np, kind.name.lower()))(values)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_unary_types() -> None:
    """tensorrt-features.md#1.42b."""
    network = new_network()
    integers = network.add_input("i", trt.int32, (2,))
    layer = network.add_unary(integers, trt.UnaryOperation.EXP)
    with pytest.raises(InvalidModelError, match=r"Unary\]: operation EXP requires a floating-point input"):
        output_of(network, layer, {"i": np.zeros(2, np.int32)})
    layer.op = trt.UnaryOperation.SIGN
    np.testing.assert_array_equal(output_of(network, layer, {"i": np.array([-3, 2], np.int32)}), [-1, 1])


@pytest.mark.parametrize("kind", trt.ElementWiseOperation)
def test_elementwise(kind: trt.ElementWiseOperation) -> None:
    """tensorrt-features.md#1.10a; the second operand is repeated along an axis."""
    functions = {
        "SUM": np.add,
        "PROD": np.multiply,
        "MAX": np.maximum,
        "MIN": np.minimum,
        "SUB": np.subtract,
        "DIV": np.divide,
        "POW": np.power,
        "FLOOR_DIV": np.floor_divide,
        "AND": np.logical_and,
        "OR": np.logical_or,
        "XOR": np.logical_xor,
        "EQUAL": np.equal,
        "GREATER": np.greater,
        "LESS": np.less,
    }
    logic = kind.name in ("AND", "OR", "XOR")
    a = (X > 0) if logic else np.abs(X) + 0.5
    b = (X[..., :1] > -1) if logic else np.abs(X[..., :1]) + 0.5
    network = new_network()
    dtype = trt.bool if logic else trt.float32
    left, right = (network.add_input(name, dtype, array.shape) for name, array in (("a", a), ("b", b)))
    layer = network.add_elementwise(left, right, kind)
    found = output_of(network, layer, {"a": a, "b": b})
    np.testing.assert_allclose(found, functions[kind.name](a, b), rtol=1e-5)
    assert layer.get_output(0).dtype is (trt.bool if kind >= trt.ElementWiseOperation.AND else trt.float32)


@pytest.mark.parametrize(
    ("kind", "types", "text"),
    [
        ("POW", (trt.int32, trt.int32), "operation POW requires inputs with activation type."),
        ("AND", (trt.int32, trt.int32), "operation AND requires boolean inputs."),
        ("SUM", (trt.float32, trt.int32), "has incompatible input types Float and Int32"),
    ],
)
def test_elementwise_types(kind: str, types: tuple[trt.DataType, trt.DataType], text: str) -> None:
    """tensorrt-features.md#1.10b."""
    network = new_network()
    a, b = (network.add_input(name, dtype, (2,)) for name, dtype in zip("ab", types, strict=True))
    layer = network.add_elementwise(a, b, trt.ElementWiseOperation[kind])
    with pytest.raises(InvalidModelError, match=text):
        output_of(network, layer, {})


def test_division_of_integers() -> None:
    """tensorrt-features.md#1.10b: DIV truncates, FLOOR_DIV rounds down."""
    a, b = np.array([-7, 7], np.int32), np.array([2, 2], np.int32)
    for kind, expected in (("DIV", [-3, 3]), ("FLOOR_DIV", [-4, 3])):
        network = new_network()
        layer = network.add_elementwise(constant(network, a), constant(network, b), trt.ElementWiseOperation[kind])
        np.testing.assert_array_equal(output_of(network, layer, {}), expected)


def test_identity_converts() -> None:
    """tensorrt-features.md#1.14, 4.9."""
    network, x = network_with_x()
    layer = network.add_identity(x)
    layer.set_output_type(0, trt.int32)
    assert layer.get_output(0).dtype is trt.int32
    np.testing.assert_array_equal(output_of(network, layer, {"x": X}), X.astype(np.int32))


def test_parametric_relu_and_select() -> None:
    """tensorrt-features.md#1.23, 1.35."""
    network, x = network_with_x()
    slope = constant(network, np.array([0.1, 0.2], np.float32).reshape(1, 2, 1, 1))
    sloped = network.add_parametric_relu(x, slope)
    expected = np.where(X >= 0, X, X * np.array([0.1, 0.2], np.float32).reshape(1, 2, 1, 1))
    np.testing.assert_allclose(output_of(network, sloped, {"x": X}), expected, rtol=1e-6)
    zero = constant(network, np.zeros((1, 1, 1, 1), np.float32))
    positive = network.add_elementwise(x, zero, trt.ElementWiseOperation.GREATER)
    chosen = network.add_select(positive.get_output(0), x, zero)
    np.testing.assert_array_equal(output_of(network, chosen, {"x": X}), np.maximum(X, 0))


@pytest.mark.parametrize("mode", trt.ScaleMode)
def test_scale(mode: trt.ScaleMode) -> None:
    """tensorrt-features.md#1.33."""
    shape = {trt.ScaleMode.UNIFORM: (), trt.ScaleMode.CHANNEL: (2, 1, 1), trt.ScaleMode.ELEMENTWISE: (2, 3, 4)}[mode]
    scale, shift = (np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape) + k for k in (0, 9))
    network, x = network_with_x()
    layer = network.add_scale(x, mode, shift=shift, scale=scale, power=np.full(shape, 2, np.float32))
    np.testing.assert_allclose(output_of(network, layer, {"x": X}), (X * scale + shift) ** 2, rtol=1e-5)
    layer.power = trt.Weights()
    network.unmark_output(layer.get_output(0))
    np.testing.assert_allclose(output_of(network, layer, {"x": X}), X * scale + shift, rtol=1e-5)


def test_scale_of_few_dimensions() -> None:
    network = new_network()
    layer = network.add_scale(network.add_input("x", trt.float32, (2, 3)), trt.ScaleMode.UNIFORM)
    with pytest.raises(InvalidModelError, match="a minimum of 3 dimensions behind the batch"):
        output_of(network, layer, {})
