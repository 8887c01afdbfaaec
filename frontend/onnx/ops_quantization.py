"""Quantised networks: QuantizeLinear and DequantizeLinear as layers, ops in int8 as what they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.narrow_type import INFINITELY_SCALED
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.narrow_types import NARROW_TYPES
from mlirt.frontend.onnx.narrow_values import as_narrow
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.ops_pooling import pool
from mlirt.frontend.onnx.quantized import (
    dequantized,
    dequantized_floats,
    quantized,
    quantized_narrowly,
)
from mlirt.frontend.onnx.tensor_reader import element_name

Triple = tuple[Value, Value, Value | None]


@onnx_op("QuantizeLinear", since=10)
@onnx_op("QuantizeLinear", domain="com.microsoft")
def quantize_linear(net: Network, node: Node) -> Value:
    zero, target = node.optional(2), node.integer("output_dtype", 0)
    kind = NARROW_TYPES.get(target) if zero is None else zero.narrow
    if _is_infinite(node.input(1)):
        return as_narrow(layers.in_float(net, node.input(0)), INFINITELY_SCALED)
    if kind is not None:
        return quantized_narrowly(net, node, kind)
    name = element_name(target, node.label) if target else "uint8"
    element = name if zero is None else zero.element_name
    return quantized(net, node, node.input(0), node.input(1), zero, node.integer("axis", 1), element)


@onnx_op("DequantizeLinear", since=10)
@onnx_op("DequantizeLinear", domain="com.microsoft")
def dequantize_linear(net: Network, node: Node) -> Value:
    x, zero, target = node.input(0), node.optional(2), node.integer("output_dtype", 0)
    if x.narrow is not None and x.narrow.is_infinitely_scaled:
        if not _is_infinite(node.input(1)):
            raise node.invalid("expected an infinite scale, as its QuantizeLinear has")
        result = layers.cast(net, replace(x, narrow=None), node.input(1).element)
    elif x.narrow is not None and not x.narrow.is_integer:
        result = dequantized_floats(net, node)
    else:
        result = dequantized(net, node, x, node.input(1), zero, node.integer("axis", 1))
    return layers.cast(net, result, element_name(target, node.label)) if target else result


def _is_infinite(scale: Value) -> bool:
    """Whether a scale for all numbers is infinite: what a calibration finds for a tensor that has an infinity."""
    numbers = scale.array
    return numbers is not None and numbers.dtype.kind == "f" and numbers.size == 1 and bool(np.isposinf(numbers).all())


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
