"""Normalisations: with stored statistics, and with the statistics of the data."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.dialects.length_requirements import multiple
from mlirt.dialects.symbolic import product
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.data_dependent_sizes import require_lengths
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.normalization import (
    batch_normalized,
    layer_normalized,
    per_channel,
    require_one_per_channel,
    standardized,
    standardized_groups,
)
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node


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
    require_one_per_channel(net, node, x, (scale, bias, mean, variance))
    epsilon = node.real("epsilon", 1e-5)
    return batch_normalized(net, x, (scale, bias, mean, variance), epsilon, node.name)


@onnx_op("InstanceNormalization")
def instance_normalization(net: Network, node: Node) -> Value:
    x, scale, bias = (node.input(k) for k in range(3))
    require_one_per_channel(net, node, x, (scale, bias))
    normalized = standardized(net, x, list(range(2, x.rank)), node.real("epsilon", 1e-5))
    return per_channel(net, normalized, scale, bias)


@onnx_op("LayerNormalization")
def layer_normalization(net: Network, node: Node) -> Sequence[Value]:
    """Statistics in float32, as `stash_type` asks for; optimizers write it into models of older opsets, too."""
    x, scale, bias = node.input(0), node.input(1), node.optional(2)
    axis = node.axis("axis", -1, x.rank)
    axes = list(range(axis, x.rank))
    return layer_normalized(net, x, scale, bias, axes, node.real("epsilon", 1e-5))


@onnx_op("GroupNormalization", since=18)
def group_normalization(net: Network, node: Node) -> Value:
    """Statistics of groups of channels; scale and bias have one value per channel, before opset 21 one per group."""
    x, scale, bias, groups = node.input(0), node.input(1), node.input(2), node.integer("num_groups")
    channels = x.dims[1] if x.rank > 1 else 0
    if groups < 1:
        raise node.invalid(f"expected a positive num_groups, got {groups}")
    require_lengths(net, node, multiple("", f"{groups} groups do not divide {{left}} channels", channels, groups))
    wide = layers.widened(net, x)
    normalized = standardized_groups(net, wide, groups, node.real("epsilon", 1e-5))
    if scale.dims == (groups,) and node.opset < 21:
        factor, shift = (
            layers.reshape(net, layers.cast(net, v, wide.element), [groups, *[1] * (x.rank - 1)]) for v in (scale, bias)
        )
        scaled = layers.binary(net, "sum", layers.binary(net, "prod", normalized, factor), shift)
        return layers.cast(net, layers.reshape(net, scaled, x.dims), x.element)
    require_one_per_channel(net, node, x, (scale, bias))
    plain = layers.cast(net, layers.reshape(net, normalized, x.dims), x.element)
    return per_channel(net, plain, scale, bias)


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
