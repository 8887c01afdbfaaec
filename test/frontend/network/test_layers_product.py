"""Fully connected, matrix multiply and Einstein sums through the network API (tensorrt-features.md#1.9, 1.12, 1.22)."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import constant, new_network, output_of

import mlirt as trt
from mlirt.errors import InvalidModelError

RNG = np.random.default_rng(4)
NONE, TRANSPOSE, VECTOR = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE, trt.MatrixOperation.VECTOR


def random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_fully_connected() -> None:
    """tensorrt-features.md#1.12."""
    x, kernel, bias = random(2, 3, 2, 2), random(5, 12), random(5)
    network = new_network()
    layer = network.add_fully_connected(network.add_input("x", trt.float32, x.shape), 5, kernel, bias)
    expected = (x.reshape(2, 12) @ kernel.T + bias).reshape(2, 5, 1, 1)
    np.testing.assert_allclose(output_of(network, layer, {"x": x}), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("a", "b", "op0", "op1", "equation"),
    [
        ((2, 3, 4), (2, 4, 5), NONE, NONE, "bij,bjk->bik"),
        ((2, 4, 3), (1, 5, 4), TRANSPOSE, TRANSPOSE, "bji,kj->bik"),
        ((2, 3, 4), (2, 4), NONE, VECTOR, "bij,bj->bi"),
        ((2, 4), (2, 4), VECTOR, VECTOR, "bj,bj->b"),
    ],
)
def test_matrix_multiply(
    a: tuple[int, ...], b: tuple[int, ...], op0: trt.MatrixOperation, op1: trt.MatrixOperation, equation: str
) -> None:
    """tensorrt-features.md#1.22a."""
    left, right = random(*a), random(*b)
    network = new_network()
    layer = network.add_matrix_multiply(constant(network, left), op0, constant(network, right), op1)
    assert (layer.op0, layer.op1) == (op0, op1)
    expected = np.einsum(equation, left, right[0] if b[0] == 1 else right)
    np.testing.assert_allclose(output_of(network, layer, {}), expected, rtol=1e-5, atol=1e-5)


def test_product_over_nothing() -> None:
    """tensorrt-features.md#1.22b."""
    network = new_network()
    a, b = (network.add_input(name, trt.float32, shape) for name, shape in (("a", (3, 0)), ("b", (0, 2))))
    layer = network.add_matrix_multiply(a, NONE, b, NONE)
    found = output_of(network, layer, {"a": np.empty((3, 0), np.float32), "b": np.empty((0, 2), np.float32)})
    np.testing.assert_array_equal(found, np.zeros((3, 2)))


@pytest.mark.parametrize("equation", ["ij, jk -> ik", "ij,jk", "ij,jk->"])
def test_einsum(equation: str) -> None:
    """tensorrt-features.md#1.9a."""
    a, b = random(2, 3), random(3, 4)
    network = new_network()
    layer = network.add_einsum([constant(network, a), constant(network, b)], equation)
    assert layer.equation == equation
    expected = np.einsum(equation.replace(" ", ""), a, b)
    np.testing.assert_allclose(output_of(network, layer, {}), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "count", "text"),
    [
        ("...j,jk->...k", 2, "ellipsis is not permitted in Einsum equation"),
        ("ii,ik->k", 2, "Diagonal operations are not permitted in Einsum equation"),
        ("ij,jk,kl->il", 3, "einsum does not support more than two inputs."),
        ("ijk,jk->i", 2, "number of subscripts for input operand 0 in the equation is not equal to the rank"),
    ],
)
def test_limits_of_einsum(equation: str, count: int, text: str) -> None:
    """tensorrt-features.md#1.9b."""
    network = new_network()
    layer = network.add_einsum([constant(network, random(3, 3)) for _ in range(count)], equation)
    with pytest.raises(InvalidModelError, match=text):
        output_of(network, layer, {})
