"""Normalisations: with stored statistics, and with the statistics of the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirt.dialects.length_requirements import equal, multiple
from mlirt.dialects.symbolic import product
from mlirt.dialects.tensor_types import numpy_dtype
from mlirt.frontend.onnx import layers
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.network import Network, Value
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.number_arrays import Array
from mlirt.frontend.onnx.run_time_sizes import require_lengths


@onnx_op("BatchNormalization")
def batch_normalization(net: Network, node: Node) -> Value:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias as one scale layer with shift and factor."""
    if node.integer("training_mode", 0) or (node.opset < 7 and not node.integer("is_test", 0)):
        raise node.unsupported("it is in training mode; export the model for inference")
    if node.wants(1):
        raise node.unsupported("only its first output can be computed; export the model for inference")
    x, scale, bias, mean, variance = (node.input(k) for k in range(5))
    if x.rank < 2:
        raise node.invalid(f"expected an input of at least 2 dimensions, but it has {x.rank}")
    _require_one_per_channel(net, node, x, (scale, bias, mean, variance))
    epsilon = node.real("epsilon", 1e-5)
    stored = [value.array for value in (scale, bias, mean, variance)]
    if all(array is not None for array in stored) and net.keeps_weights:
        with net.unfolded():
            coefficients = _coefficients(net, [scale, bias, mean, variance], epsilon, x)
            return net.emit("scale", [x, *coefficients, None], mode="channel", channel_axis=1)
    if all(array is not None for array in stored):
        factor, shift = _folded([array for array in stored if array is not None], epsilon, numpy_dtype(x.element))
        coefficients = [net.constant(shift, node.name), net.constant(factor, node.name)]
        return net.emit("scale", [x, *coefficients, None], mode="channel", channel_axis=1)
    return _normalized_at_run_time(net, x, [scale, bias, mean, variance], epsilon)


def _coefficients(net: Network, statistics: Sequence[Value], epsilon: float, like: Value) -> list[Value]:
    """What is added, and what x is multiplied with before, computed by layers."""
    scale, bias, mean, variance = (layers.cast(net, value, like.element) for value in statistics)
    spread = layers.binary(net, "sum", variance, layers.scalar_like(net, epsilon, variance))
    factor = layers.binary(net, "div", scale, layers.unary(net, "sqrt", spread))
    return [layers.binary(net, "sub", bias, layers.binary(net, "prod", mean, factor)), factor]


def _folded(stored: Sequence[Array], epsilon: float, kind: np.dtype[Any]) -> tuple[Array, Array]:
    """What x is multiplied with, and what is added then; statistics that make no sense give infinities or NaN."""
    scale, bias, mean, variance = (array.astype(np.float64) for array in stored)
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + epsilon)
        return factor.astype(kind), (bias - mean * factor).astype(kind)


def _normalized_at_run_time(net: Network, x: Value, statistics: Sequence[Value], epsilon: float) -> Value:
    scale, bias, mean, variance = (
        layers.cast(net, layers.reshape(net, value, [*value.dims, *[1] * (x.rank - 2)]), x.element)
        for value in statistics
    )
    deviation = layers.unary(
        net, "sqrt", layers.binary(net, "sum", variance, layers.scalar_like(net, epsilon, variance))
    )
    factor = layers.binary(net, "div", scale, deviation)
    return layers.binary(net, "sum", layers.binary(net, "prod", layers.binary(net, "sub", x, mean), factor), bias)


@onnx_op("InstanceNormalization")
def instance_normalization(net: Network, node: Node) -> Value:
    x, scale, bias = (node.input(k) for k in range(3))
    _require_one_per_channel(net, node, x, (scale, bias))
    normalized = standardized(net, x, list(range(2, x.rank)), node.real("epsilon", 1e-5))
    return _per_channel(net, normalized, scale, bias)


def _require_one_per_channel(net: Network, node: Node, x: Value, coefficients: Sequence[Value]) -> None:
    for value in coefficients:
        fault = "it needs {left} coefficients, one for each channel, but has {right}"
        require_lengths(net, node, equal("", "", x.dims[1] if x.rank > 1 else 0, product(value.dims), fault))


def _per_channel(net: Network, x: Value, scale: Value, bias: Value) -> Value:
    factor, shift = (layers.reshape(net, value, [*value.dims, *[1] * (x.rank - 2)]) for value in (scale, bias))
    return layers.binary(net, "sum", layers.binary(net, "prod", x, factor), shift)


def standardized(net: Network, x: Value, axes: Sequence[int], epsilon: float) -> Value:
    """(x - mean) / sqrt(variance + epsilon) over some axes, in the type of x."""
    return mean_inverse_and_standardized(net, x, axes, epsilon)[2]


def mean_inverse_and_standardized(
    net: Network, x: Value, axes: Sequence[int], epsilon: float
) -> tuple[Value, Value, Value]:
    """The mean and 1 / sqrt(variance + epsilon), in float32 where x is in half precision; and (x - mean) times it."""
    wide = layers.widened(net, x)
    mean = layers.reduce(net, "avg", wide, axes)
    centred = layers.binary(net, "sub", wide, mean)
    variance = layers.reduce(net, "avg", layers.binary(net, "prod", centred, centred), axes)
    shifted = layers.binary(net, "sum", variance, layers.scalar_like(net, epsilon, variance))
    inverse = layers.unary(net, "recip", layers.unary(net, "sqrt", shifted))
    return mean, inverse, layers.cast(net, layers.binary(net, "prod", centred, inverse), x.element)


@onnx_op("LayerNormalization")
def layer_normalization(net: Network, node: Node) -> Sequence[Value]:
    """Statistics in float32, as `stash_type` asks for; optimizers write it into models of older opsets, too."""
    x, scale, bias = node.input(0), node.input(1), node.optional(2)
    axis = node.axis("axis", -1, x.rank)
    axes = list(range(axis, x.rank))
    mean, inverse, normalized = mean_inverse_and_standardized(net, x, axes, node.real("epsilon", 1e-5))
    # Coefficients are repeated to the shape of x, and never x to theirs.
    result = layers.binary(net, "prod", normalized, layers.broadcast_to(net, scale, x.dims))
    if bias is not None:
        result = layers.binary(net, "sum", result, layers.broadcast_to(net, bias, x.dims))
    return [result, mean, inverse]


@onnx_op("GroupNormalization", since=18)
def group_normalization(net: Network, node: Node) -> Value:
    """Statistics of groups of channels; scale and bias have one value per channel, before opset 21 one per group."""
    x, scale, bias, groups = node.input(0), node.input(1), node.input(2), node.integer("num_groups")
    channels = x.dims[1] if x.rank > 1 else 0
    if groups < 1:
        raise node.invalid(f"expected a positive num_groups, got {groups}")
    require_lengths(net, node, multiple("", f"{groups} groups do not divide {{left}} channels", channels, groups))
    wide = layers.widened(net, x)
    grouped = layers.reshape(net, wide, [x.dims[0], groups, channels // groups, *x.dims[2:]])
    normalized = standardized(net, grouped, list(range(2, grouped.rank)), node.real("epsilon", 1e-5))
    if scale.dims == (groups,) and node.opset < 21:
        factor, shift = (
            layers.reshape(net, layers.cast(net, v, wide.element), [groups, *[1] * (x.rank - 1)]) for v in (scale, bias)
        )
        scaled = layers.binary(net, "sum", layers.binary(net, "prod", normalized, factor), shift)
        return layers.cast(net, layers.reshape(net, scaled, x.dims), x.element)
    _require_one_per_channel(net, node, x, (scale, bias))
    plain = layers.cast(net, layers.reshape(net, normalized, x.dims), x.element)
    return _per_channel(net, plain, scale, bias)


@onnx_op("MeanVarianceNormalization")
def mean_variance_normalization(net: Network, node: Node) -> Value:
    given = node.input(0)
    x = layers.widened(net, given)
    # The axes that are meant where none are given are those of images; fewer dimensions have fewer of them.
    usual = [axis for axis in (0, 2, 3) if axis < x.rank]
    axes = [node.from_front(axis, x.rank) for axis in node.integers("axes", usual)]
    mean = layers.reduce(net, "avg", x, axes)
    square = layers.reduce(net, "avg", layers.binary(net, "prod", x, x), axes)
    variance = layers.binary(net, "sub", square, layers.binary(net, "prod", mean, mean))
    deviation = layers.binary(net, "sum", layers.unary(net, "sqrt", variance), layers.scalar_like(net, 1e-9, x))
    normalized = layers.binary(net, "div", layers.binary(net, "sub", x, mean), deviation)
    return layers.cast(net, normalized, given.element)


@onnx_op("LpNormalization")
def lp_normalization(net: Network, node: Node) -> Value:
    """x over its norm along one axis; 0 where the norm is 0."""
    given, p = node.input(0), node.integer("p", 2)
    axis, x = node.axis("axis", -1, given.rank), layers.widened(net, given)
    if p not in (1, 2):
        raise node.invalid(f"expected p as 1 or 2, got {p}")
    if p == 1:
        norm = layers.reduce(net, "sum", layers.unary(net, "abs", x), [axis])
    else:
        norm = layers.unary(net, "sqrt", layers.reduce(net, "sum", layers.binary(net, "prod", x, x), [axis]))
    zero = layers.scalar_like(net, 0.0, x)
    empty = layers.binary(net, "equal", norm, zero)
    safe = layers.select(net, empty, layers.scalar_like(net, 1.0, x), norm)
    return layers.cast(net, layers.binary(net, "div", layers.select(net, empty, zero, x), safe), given.element)


@onnx_op("LRN")
def local_response_normalization(net: Network, node: Node) -> Value:
    size = node.integer("size")
    return net.emit(
        "lrn",
        [node.input(0)],
        window=size,
        alpha=node.real("alpha", 1e-4),
        beta=node.real("beta", 0.75),
        k=node.real("bias", 1.0),
    )


@onnx_op("Softmax", "LogSoftmax")
def flat_softmax(net: Network, node: Node) -> Value:
    """Before opset 13: over all dimensions from `axis` on, seen as one."""
    x = node.input(0)
    axis = node.axis("axis", 1, x.rank)
    log = node.op_type == "LogSoftmax"
    if all(dim == 1 for dim in x.dims[axis + 1 :]):
        return net.emit("softmax", [x], axis=axis, log=log)
    flat = layers.reshape(net, x, [product(x.dims[:axis]), product(x.dims[axis:])])
    return layers.reshape(net, net.emit("softmax", [flat], axis=1, log=log), x.dims)


@onnx_op("Softmax", "LogSoftmax", since=13)
def softmax(net: Network, node: Node) -> Value:
    x = node.input(0)
    return net.emit("softmax", [x], axis=node.axis("axis", -1, x.rank), log=node.op_type == "LogSoftmax")
