"""Convolutions and matrix products of quantised tensors: exact integer sums, one factor, one rounding."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.dialects.symbolic import Dim
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.integer_sums import integer_convolution, integer_product, per_result
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.ops_quantization import dynamically_quantized
from mlirt.frontend.onnx.quantized import quantized


@onnx_op("QLinearConv", since=10)
def quantized_convolution(net: Network, node: Node) -> Value:
    x, kernel = node.input(0), node.input(3)
    total = integer_convolution(net, node, x, kernel, node.optional(2), node.optional(5), node.optional(8))
    return _requantized(net, node, total, _factor(net, node, [1, 4], [-1, *[1] * (total.rank - 2)]), 6)


@onnx_op("QLinearMatMul", since=10)
def quantized_product(net: Network, node: Node) -> Value:
    total = integer_product(net, node, node.input(0), node.input(3), node.optional(2), node.optional(5))
    factor = layers.binary(net, "prod", per_result(net, node, 1, [-1, 1]), per_result(net, node, 4, [-1]))
    return _requantized(net, node, total, factor, 6)


@onnx_op("QGemm", domain="com.microsoft")
def quantized_gemm(net: Network, node: Node) -> Value:
    """alpha (a - a_zero)(b - b_zero) plus a bias in units of both scales, which alpha multiplies too."""
    a, b = (
        layers.transpose(net, node.input(k), [1, 0]) if node.integer(name, 0) else node.input(k)
        for k, name in ((0, "transA"), (3, "transB"))
    )
    total, bias = integer_product(net, node, a, b, node.optional(2), node.optional(5)), node.optional(6)
    total = total if bias is None else layers.binary(net, "sum", total, bias)
    factor, alpha = _factor(net, node, [1, 4], [-1]), node.real("alpha", 1.0)
    if alpha != 1.0:
        factor = layers.binary(net, "prod", layers.scalar_like(net, alpha, factor), factor)
    if node.optional(7) is None:
        return _scaled(net, total, factor, None)
    return _requantized(net, node, total, factor, 7)


def _factor(net: Network, node: Node, scales: Sequence[int], shape: Sequence[Dim]) -> Value:
    """The product of the scales that are these inputs, the ones per channel along the -1 of `shape`."""
    return layers.binary(net, "prod", *(per_result(net, node, k, shape) for k in scales))


def _requantized(net: Network, node: Node, total: Value, factor: Value, k: int) -> Value:
    """round(total * (factor / result's scale)) + zero point; input `k` is the result's scale."""
    zero, rows = node.optional(k + 1), [-1, 1]
    factor = layers.binary(net, "div", factor, per_result(net, node, k, rows))
    element = node.input(0).element_name if zero is None else zero.element_name
    exact = _scaled(net, total, layers.cast(net, factor, "float32"), None)
    one = layers.scalar_like(net, 1.0, exact, rank=0)
    return quantized(net, node, exact, one, None if zero is None else per_result(net, node, k + 1, rows), 1, element)


def _scaled(net: Network, total: Value, factor: Value, bias: Value | None) -> Value:
    """An exact sum as float32, times its scale."""
    result = layers.binary(net, "prod", layers.cast(net, total, factor.element), factor)
    return result if bias is None else layers.binary(net, "sum", result, bias)


@onnx_op("ConvInteger", since=10)
def convolution_of_integers(net: Network, node: Node) -> Value:
    return integer_convolution(net, node, node.input(0), node.input(1), node.optional(2), node.optional(3), None)


@onnx_op("MatMulInteger", since=10)
def product_of_integers(net: Network, node: Node) -> Value:
    return integer_product(net, node, node.input(0), node.input(1), node.optional(2), node.optional(3))


@onnx_op("MatMulIntegerToFloat", domain="com.microsoft")
def integer_product_to_float(net: Network, node: Node) -> Value:
    total = integer_product(net, node, node.input(0), node.input(1), node.optional(4), node.optional(5))
    return _scaled(net, total, _factor(net, node, [2, 3], [-1]), node.optional(6))


@onnx_op("DynamicQuantizeMatMul", domain="com.microsoft")
def dynamic_product(net: Network, node: Node) -> Value:
    """The left operand is quantised with its own range, and the product scaled back."""
    a, scale, zero = dynamically_quantized(net, node, node.input(0))
    total = integer_product(net, node, a, node.input(1), zero, node.optional(3))
    factor = layers.binary(net, "prod", scale, per_result(net, node, 2, [-1]))
    return _scaled(net, total, factor, node.optional(4))
