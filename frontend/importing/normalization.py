"""Normalisations: with stored statistics, and with the statistics of the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirt.dialects.length_requirements import equal
from mlirt.dialects.symbolic import product
from mlirt.dialects.tensor_types import numpy_dtype
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.data_dependent_sizes import require_lengths
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.number_arrays import Array
from mlirt.frontend.importing.source_node import SourceNode


def batch_normalized(
    net: Network, x: Value, statistics: Sequence[Value], epsilon: float, name: str
) -> Value:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias as one scale layer with shift and factor.

    `statistics` are scale, bias, mean and variance, one element for each channel; `name` is that of new constants.
    """
    stored = [value.array for value in statistics]
    if any(array is None for array in stored):
        return _normalized_at_run_time(net, x, statistics, epsilon)
    if net.keeps_weights:
        with net.unfolded():
            coefficients = _coefficients(net, statistics, epsilon, x)
            return net.emit("scale", [x, *coefficients, None], mode="channel", channel_axis=1)
    factor, shift = _folded([array for array in stored if array is not None], epsilon, numpy_dtype(x.element))
    coefficients = [net.constant(shift, name), net.constant(factor, name)]
    return net.emit("scale", [x, *coefficients, None], mode="channel", channel_axis=1)


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


def require_one_per_channel(net: Network, node: SourceNode, x: Value, coefficients: Sequence[Value]) -> None:
    for value in coefficients:
        fault = "it needs {left} coefficients, one for each channel, but has {right}"
        require_lengths(net, node, equal("", "", x.dims[1] if x.rank > 1 else 0, product(value.dims), fault))


def per_channel(net: Network, x: Value, scale: Value, bias: Value) -> Value:
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


def layer_normalized(
    net: Network, x: Value, scale: Value | None, bias: Value | None, axes: Sequence[int], epsilon: float
) -> list[Value]:
    """The standardised x times scale plus bias, the mean, and 1 / sqrt(variance + epsilon); statistics in float32."""
    mean, inverse, result = mean_inverse_and_standardized(net, x, axes, epsilon)
    # Coefficients are repeated to the shape of x, and never x to theirs.
    if scale is not None:
        result = layers.binary(net, "prod", result, layers.broadcast_to(net, scale, x.dims))
    if bias is not None:
        result = layers.binary(net, "sum", result, layers.broadcast_to(net, bias, x.dims))
    return [result, mean, inverse]


def standardized_groups(net: Network, x: Value, groups: int, epsilon: float) -> Value:
    """Each group of channels with a mean of 0 and a deviation of 1; N x groups x channels of a group x spatial axes."""
    channels = x.dims[1]
    grouped = layers.reshape(net, x, [x.dims[0], groups, channels // groups, *x.dims[2:]])
    return standardized(net, grouped, list(range(2, grouped.rank)), epsilon)


def by_root_mean_square(net: Network, x: Value, scale: Value, axis: int, epsilon: float) -> list[Value]:
    """`x / sqrt(mean of squares + epsilon) * scale`, with the mean in float32, and the factor."""
    wide = layers.widened(net, x)
    squares = layers.reduce(net, "avg", layers.binary(net, "prod", wide, wide), list(range(axis, x.rank)))
    shifted = layers.binary(net, "sum", squares, layers.scalar_like(net, epsilon, squares))
    inverse = layers.unary(net, "recip", layers.unary(net, "sqrt", shifted))
    normalized = layers.cast(net, layers.binary(net, "prod", wide, inverse), x.element)
    return [layers.binary(net, "prod", normalized, scale), inverse]
