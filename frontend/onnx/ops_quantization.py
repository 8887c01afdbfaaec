"""Quantised networks: QuantizeLinear and DequantizeLinear as layers, the integer ops as what they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlirt.dialects.symbolic import Dim, product
from mlirt.frontend.onnx import layers
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.narrow_types import NARROW_TYPES
from mlirt.frontend.onnx.network import Network, Value
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.ops_convolution import convolve
from mlirt.frontend.onnx.ops_matmul import product as matrix_product
from mlirt.frontend.onnx.ops_pooling import pool
from mlirt.frontend.onnx.quantized import (
    dequantized,
    dequantized_floats,
    quantized,
    quantized_narrowly,
    without_offset,
)
from mlirt.frontend.onnx.tensor_reader import element_name

# Sums of this many products of 8-bit numbers are exact in float32.
_EXACT_TERMS = (1 << 24) // (255 * 255)

Triple = tuple[Value, Value, Value | None]


@onnx_op("QuantizeLinear", since=10)
@onnx_op("QuantizeLinear", domain="com.microsoft")
def quantize_linear(net: Network, node: Node) -> Value:
    zero, target = node.optional(2), node.integer("output_dtype", 0)
    kind = NARROW_TYPES.get(target) if zero is None else zero.narrow
    if kind is not None:
        return quantized_narrowly(net, node, kind)
    name = element_name(target, node.label) if target else "uint8"
    element = name if zero is None else zero.element_name
    return quantized(net, node, node.input(0), node.input(1), zero, node.integer("axis", 1), element)


@onnx_op("DequantizeLinear", since=10)
@onnx_op("DequantizeLinear", domain="com.microsoft")
def dequantize_linear(net: Network, node: Node) -> Value:
    x, zero, target = node.input(0), node.optional(2), node.integer("output_dtype", 0)
    if x.narrow is not None and not x.narrow.is_integer:
        result = dequantized_floats(net, node)
    else:
        result = dequantized(net, node, x, node.input(1), zero, node.integer("axis", 1))
    return layers.cast(net, result, element_name(target, node.label)) if target else result


@onnx_op("QLinearConv", since=10)
def quantized_convolution(net: Network, node: Node) -> Value:
    """The exact sum of products of integers, then one factor and one rounding, as integer kernels compute it."""
    x, kernel, bias = node.input(0), node.input(3), node.optional(8)
    column: list[Dim] = [-1, *[1] * (kernel.rank - 1)]
    image, weights = (
        without_offset(net, x, node.optional(2)),
        without_offset(net, kernel, node.optional(5), _column(node, 5, column)),
    )
    bias = None if bias is None else layers.cast(net, bias, "float32")
    total = convolve(net, node, image, weights, bias)
    return _rescaled(net, node, total, [1, 4], 6, _column(node, 4, [-1, *[1] * (total.rank - 2)]))


@onnx_op("QLinearMatMul", since=10)
def quantized_product(net: Network, node: Node) -> Value:
    a, b = node.input(0), node.input(3)
    rows, columns = _column(node, 2, [-1, 1]), _column(node, 5, [-1])
    total = matrix_product(
        net, node, without_offset(net, a, node.optional(2), rows), without_offset(net, b, node.optional(5), columns)
    )
    return _rescaled(net, node, total, [1, 4], 6, None)


@onnx_op("QGemm", domain="com.microsoft")
def quantized_gemm(net: Network, node: Node) -> Value:
    swapped = ["transpose" if node.integer(name, 0) else "none" for name in ("transA", "transB")]
    per_kernel: list[Dim] = [-1, 1] if swapped[1] == "transpose" else [-1]
    a, b = (
        without_offset(net, node.input(0), node.optional(2)),
        without_offset(net, node.input(3), node.optional(5), _column(node, 5, per_kernel)),
    )
    total, bias = layers.matrix_multiply(net, a, b, *swapped), node.optional(6)
    total = total if bias is None else layers.binary(net, "sum", total, layers.cast(net, bias, "float32"))
    alpha = node.real("alpha", 1.0)
    if alpha != 1.0:
        total = layers.binary(net, "prod", total, layers.scalar_like(net, alpha, total))
    if node.optional(7) is None:
        return _scaled(net, total, [layers.binary(net, "prod", node.input(1), node.input(4))], None)
    return _rescaled(net, node, total, [1, 4], 7, None)


def _column(node: Node, k: int, shape: list[Dim]) -> list[Dim] | None:
    """The shape that lays a coefficient with one value per kernel or row along its axis; `None` for a single one."""
    value = node.optional(k)
    if value is None or value.rank != 1 or value.dims == (1,):
        return None
    return [value.dims[0] if dim == -1 else dim for dim in shape]


def _rescaled(net: Network, node: Node, total: Value, scales: Sequence[int], k: int, shape: list[Dim] | None) -> Value:
    """round(total * (product of the scales / result's scale)) + zero point; input `k` is the result's scale."""
    factor = layers.binary(net, "prod", *(_plain(net, node.input(s)) for s in scales))
    factor = layers.binary(net, "div", factor, _plain(net, node.input(k)))
    factor = factor if shape is None else layers.reshape(net, factor, shape)
    zero = node.optional(k + 1)
    element = node.input(0).element_name if zero is None else zero.element_name
    exact = layers.binary(net, "prod", layers.cast(net, total, "float32"), layers.cast(net, factor, "float32"))
    one = layers.scalar_like(net, 1.0, exact, rank=0)
    return quantized(net, node, exact, one, None if zero is None else _plain(net, zero), 1, element)


def _plain(net: Network, value: Value) -> Value:
    """A single value without dimensions, others as they are."""
    return layers.reshape(net, value, []) if all(dim == 1 for dim in value.dims) else value


def _real(net: Network, node: Node, k: int, axis: int = 1) -> Value:
    """The tensor that inputs `k` (elements), `k + 1` (scale) and `k + 2` (zero point) stand for."""
    return dequantized(net, node, node.input(k), node.input(k + 1), node.optional(k + 2), axis)


def _requantized(net: Network, node: Node, x: Value, k: int, like: int = 0) -> Value:
    """`x` with the scale of input `k` and the zero point of input `k + 1`; without one, bytes as input `like` has."""
    zero = node.optional(k + 1)
    element = node.input(like).element_name if zero is None else zero.element_name
    return quantized(net, node, x, node.input(k), zero, 1, element)


_PAIRS = {"QLinearAdd": "sum", "QLinearMul": "prod"}


@onnx_op(*_PAIRS, domain="com.microsoft")
def quantized_pair(net: Network, node: Node) -> Value:
    return _requantized(
        net, node, layers.binary(net, _PAIRS[node.op_type], _real(net, node, 0), _real(net, node, 3)), 6
    )


_POINTWISE: dict[str, Callable[[Network, Node, Value], Value]] = {
    "QLinearSigmoid": lambda net, node, x: layers.activation(net, "sigmoid", x),
    "QLinearLeakyRelu": lambda net, node, x: layers.activation(net, "leaky_relu", x, node.real("alpha", 0.01)),
    "QLinearSoftmax": lambda net, node, x: net.emit("softmax", [x], axis=node.axis("axis", -1, x.rank)),
}


@onnx_op(*_POINTWISE, domain="com.microsoft")
def quantized_pointwise(net: Network, node: Node) -> Value:
    return _requantized(net, node, _POINTWISE[node.op_type](net, node, _real(net, node, 0)), 3)


@onnx_op("QLinearGlobalAveragePool", domain="com.microsoft")
def quantized_global_average(net: Network, node: Node) -> Value:
    x = _real(net, node, 0)
    last = bool(node.integer("channels_last", 0))
    return _requantized(
        net, node, layers.reduce(net, "avg", x, list(range(1, x.rank - 1) if last else range(2, x.rank))), 3
    )


@onnx_op("QLinearAveragePool", domain="com.microsoft")
def quantized_average(net: Network, node: Node) -> Value:
    x = _real(net, node, 0)
    last = bool(node.integer("channels_last", 0))
    to_front, to_back = [0, x.rank - 1, *range(1, x.rank - 1)], [0, *range(2, x.rank), 1]
    x = layers.transpose(net, x, to_front) if last else x
    mean = pool(net, node, x, "average", excludes_padding=not node.integer("count_include_pad", 0))
    return _requantized(net, node, layers.transpose(net, mean, to_back) if last else mean, 3)


@onnx_op("QLinearWhere", domain="com.microsoft")
def quantized_choice(net: Network, node: Node) -> Value:
    return _requantized(
        net, node, layers.select(net, node.input(0), _real(net, node, 1), _real(net, node, 4)), 7, like=1
    )


@onnx_op("QLinearConcat", domain="com.microsoft")
def quantized_concat(net: Network, node: Node) -> Value:
    parts = [_real(net, node, k) for k in range(2, len(node.inputs) - 2, 3)]
    if not parts:
        raise node.invalid("expected at least one tensor after the result's scale and zero point")
    joined = layers.concatenate(net, parts, node.axis("axis", 0, parts[0].rank))
    zero = node.input(1)
    return quantized(net, node, joined, node.input(0), zero, 1, zero.element_name)


@onnx_op("ConvInteger", since=10)
def integer_convolution(net: Network, node: Node) -> Value:
    """Exact sums: in float32 where they are small enough to be exact in it, else in int32."""
    x, kernel = node.input(0), node.input(1)
    per_kernel: list[Dim] = [kernel.dims[0], *[1] * (kernel.rank - 1)]
    weights_zero = node.optional(3)
    shape = None if weights_zero is None or weights_zero.dims in ((), (1,)) else per_kernel
    image, weights = without_offset(net, x, node.optional(2)), without_offset(net, kernel, weights_zero, shape)
    if not _is_exact(product(kernel.dims[1:])):
        image, weights = layers.cast(net, image, "int32"), layers.cast(net, weights, "int32")
    return layers.cast(net, convolve(net, node, image, weights, None), "int32")


@onnx_op("MatMulInteger", since=10)
def integer_product(net: Network, node: Node) -> Value:
    return layers.cast(
        net, _integer_product(net, node, node.input(0), node.input(1), node.optional(2), node.optional(3)), "int32"
    )


def _integer_product(net: Network, node: Node, a: Value, b: Value, a_zero: Value | None, b_zero: Value | None) -> Value:
    rows = None if a_zero is None or a_zero.rank != 1 or a_zero.dims == (1,) else [*a_zero.dims, 1]
    left, right = without_offset(net, a, a_zero, rows), without_offset(net, b, b_zero)
    if not _is_exact(a.dims[-1]):
        left, right = layers.cast(net, left, "int32"), layers.cast(net, right, "int32")
    return matrix_product(net, node, left, right)


def _is_exact(terms: Dim) -> bool:
    return isinstance(terms, int) and terms <= _EXACT_TERMS


@onnx_op("MatMulIntegerToFloat", domain="com.microsoft")
def integer_product_to_float(net: Network, node: Node) -> Value:
    exact = _integer_product(net, node, node.input(0), node.input(1), node.optional(4), node.optional(5))
    return _scaled(net, layers.cast(net, exact, "float32"), [node.input(2), node.input(3)], node.optional(6))


@onnx_op("DynamicQuantizeMatMul", domain="com.microsoft")
def dynamic_product(net: Network, node: Node) -> Value:
    """The left operand is quantised with its own range, and the product scaled back."""
    a, scale, zero = dynamically_quantized(net, node, node.input(0))
    exact = _integer_product(net, node, a, node.input(1), zero, node.optional(3))
    return _scaled(net, layers.cast(net, exact, "float32"), [scale, node.input(2)], node.optional(4))


def _scaled(net: Network, x: Value, factors: Sequence[Value], bias: Value | None) -> Value:
    for factor in factors:
        x = layers.binary(net, "prod", x, factor)
    return x if bias is None else layers.binary(net, "sum", x, bias)


@onnx_op("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(net: Network, node: Node) -> Sequence[Value]:
    return [value for value in dynamically_quantized(net, node, node.input(0)) if value is not None]


def dynamically_quantized(net: Network, node: Node, x: Value) -> Triple:
    """x as uint8, with the scale and the zero point that its range (0 included) asks for."""
    axes = list(range(x.rank))
    nothing = layers.scalar_like(net, 0.0, x, rank=0)
    low = layers.binary(net, "min", layers.reduce(net, "min", x, axes, keep_dims=False), nothing)
    high = layers.binary(net, "max", layers.reduce(net, "max", x, axes, keep_dims=False), nothing)
    scale = layers.binary(net, "div", layers.binary(net, "sub", high, low), layers.scalar_like(net, 255.0, x, rank=0))
    ratio = layers.unary(net, "neg", layers.binary(net, "div", low, scale))
    zero = layers.cast(net, layers.unary(net, "round", layers.activation(net, "clip", ratio, 0.0, 255.0)), "uint8")
    return quantized(net, node, x, scale, zero, 1, "uint8"), scale, zero
