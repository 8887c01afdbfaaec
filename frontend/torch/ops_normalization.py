"""Normalisations and softmax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirt.dialects.tensor_types import element_type
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.normalization import (
    batch_normalized,
    by_root_mean_square,
    layer_normalized,
    per_channel,
    standardized,
    standardized_groups,
)
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op


@aten_op("layer_norm.default", "native_layer_norm.default")
def layer_norm(net: Network, call: Call) -> Sequence[Value]:
    x = call.value("input")
    axes = list(range(x.rank - len(call.dims("normalized_shape")), x.rank))
    found = layer_normalized(net, x, call.optional("weight"), call.optional("bias"), axes, call.real("eps"))
    # The statistics of halves are float32 where layers compute them, and halves where PyTorch does on a CPU.
    pairs = zip(found, call.results, strict=False)
    return [layers.cast(net, one, element_type(wanted.element)) for one, wanted in pairs]


@aten_op("rms_norm.default")
def rms_norm(net: Network, call: Call) -> Value:
    x, scale = call.value("input"), call.optional("weight")
    epsilon = call.real("eps") if call.given("eps") else float(np.finfo(layers.numpy_dtype(x.element)).eps)
    first = x.rank - len(call.dims("normalized_shape"))
    scale = layers.scalar_like(net, 1.0, x, 1) if scale is None else scale
    return by_root_mean_square(net, x, scale, first, epsilon)[0]


@aten_op("group_norm.default", "native_group_norm.default")
def group_norm(net: Network, call: Call) -> Sequence[Value]:
    """Statistics of each group of channels, coefficients of each channel."""
    x = call.value("input")
    groups = call.integer("num_groups" if "num_groups" in call.arguments else "group")
    wide = layers.widened(net, x)
    normalized = layers.reshape(net, standardized_groups(net, wide, groups, call.real("eps")), x.dims)
    result = _with_coefficients(net, call, layers.cast(net, normalized, x.element))
    return [result]


def _with_coefficients(net: Network, call: Call, x: Value) -> Value:
    weight, bias = call.optional("weight"), call.optional("bias")
    if weight is None and bias is None:
        return x
    channels = [x.dims[1]]
    scale = weight or layers.expand(net, layers.scalar_like(net, 1.0, x, 1), channels)
    shift = bias or layers.expand(net, layers.scalar_like(net, 0.0, x, 1), channels)
    return per_channel(net, x, scale, shift)


@aten_op("instance_norm.default")
def instance_norm(net: Network, call: Call) -> Value:
    if not call.flag("use_input_stats"):
        return batch_norm(net, call)
    x = call.value("input")
    return _with_coefficients(net, call, standardized(net, x, list(range(2, x.rank)), call.real("eps")))


@aten_op("batch_norm.default")
def batch_norm(net: Network, call: Call) -> Value:
    """With stored statistics, or with those of the batch where none are stored."""
    x, mean, variance = call.value("input"), call.optional("running_mean"), call.optional("running_var")
    if mean is None or variance is None:
        return _with_coefficients(net, call, standardized(net, x, [0, *range(2, x.rank)], call.real("eps")))
    if call.arguments.get("training"):
        raise call.unsupported("it is in training mode; call eval() on the module")
    return _by_statistics(net, call, x, mean, variance)


@aten_op("_native_batch_norm_legit_no_training.default", "_native_batch_norm_legit.no_stats")
def native_batch_norm(net: Network, call: Call) -> Sequence[Value]:
    x = call.value("input")
    if "running_mean" not in call.arguments:
        return [_with_coefficients(net, call, standardized(net, x, [0, *range(2, x.rank)], call.real("eps")))]
    return [_by_statistics(net, call, x, call.value("running_mean"), call.value("running_var"))]


def _by_statistics(net: Network, call: Call, x: Value, mean: Value, variance: Value) -> Value:
    scale = call.optional("weight") or layers.filled(net, _lengths(mean), np.ones(1, layers.numpy_dtype(mean.element)))
    bias = call.optional("bias") or layers.filled(net, _lengths(mean), np.zeros(1, layers.numpy_dtype(mean.element)))
    return batch_normalized(net, x, (scale, bias, mean, variance), call.real("eps"), call.name)


def _lengths(x: Value) -> list[int]:
    return [dim for dim in x.dims if isinstance(dim, int)]


@aten_op("softmax.int", "_softmax.default", "_safe_softmax.default", "log_softmax.int", "_log_softmax.default")
def softmax(net: Network, call: Call) -> Value:
    """A row of which everything is masked gives zeros where the softmax is safe."""
    x = layers.cast(net, call.value("self"), element_type(call.element))
    if x.rank == 0:
        return layers.reshape(net, net.emit("softmax", [layers.reshape(net, x, [1])], axis=0), [])
    axis = call.axis("dim", x.rank)
    result = net.emit("softmax", [x], axis=axis, log="log_softmax" in call.operator)
    if "_safe_softmax" not in call.operator:
        return result
    return layers.select(net, layers.unary(net, "isnan", result), layers.scalar_like(net, 0.0, result), result)


@aten_op("linalg_vector_norm.default")
def vector_norm(net: Network, call: Call) -> Value:
    """The root of the sum of squares, or another norm, over some axes or all elements."""
    x = layers.widened(net, call.operand("self", call.element))
    axes = call.axes("dim", x.rank) if x.rank and call.given("dim") else list(range(x.rank))
    found = _norm(net, x, call.real("ord"), axes, keeps=call.flag("keepdim"))
    return layers.cast(net, found, element_type(call.element))


@aten_op("dist.default")
def distance(net: Network, call: Call) -> Value:
    """The norm of a difference, over all elements."""
    pair = [layers.widened(net, call.operand(name, call.element)) for name in ("self", "other")]
    difference = layers.binary(net, "sub", *layers.aligned(net, pair))
    found = _norm(net, difference, call.real("p"), list(range(difference.rank)), keeps=False)
    return layers.cast(net, found, element_type(call.element))


def _norm(net: Network, x: Value, order: float, axes: list[int], *, keeps: bool) -> Value:
    absolute = layers.unary(net, "abs", x)
    if order in (float("inf"), float("-inf")):
        return layers.reduce(net, "max" if order > 0 else "min", absolute, axes, keeps)
    if order == 0:
        nonzero = layers.unary(net, "not", layers.binary(net, "equal", x, layers.scalar_like(net, 0, x)))
        return layers.reduce(net, "sum", layers.cast(net, nonzero, x.element), axes, keeps)
    if order == 1:
        return layers.reduce(net, "sum", absolute, axes, keeps)
    if order == 2:
        return layers.unary(net, "sqrt", layers.reduce(net, "sum", layers.binary(net, "prod", x, x), axes, keeps))
    powers = layers.binary(net, "pow", absolute, layers.scalar_like(net, order, x))
    total = layers.reduce(net, "sum", powers, axes, keeps)
    return layers.binary(net, "pow", total, layers.scalar_like(net, 1 / order, total))


@aten_op("_weight_norm_interface.default")
def weight_norm(net: Network, call: Call) -> Sequence[Value]:
    """g v / |v|, with the norm over all axes but one."""
    v, g, axis = call.value("v"), call.value("g"), call.integer("dim")
    axes = [k for k in range(v.rank) if k != axis % max(v.rank, 1)]
    norm = layers.unary(net, "sqrt", layers.reduce(net, "sum", layers.binary(net, "prod", v, v), axes))
    return [layers.binary(net, "prod", v, layers.binary(net, "div", g, norm)), norm]

