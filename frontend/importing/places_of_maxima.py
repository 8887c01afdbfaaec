"""Where the results of a max pooling stand in its input."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as combinations

import numpy as np

from mlirt.dialects.symbolic import Dim, maximum
from mlirt.dialects.tensor_types import is_float
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.windows import Geometry


def places_of_maxima(
    net: Network, x: Value, pooled: Value, sizes: Sequence[int], geometry: Geometry, *, by_columns: bool = False
) -> Value:
    """For each result of a max pooling the place of the first largest element, in the flattened input.

    The elements of an image are counted row by row, or `by_columns`.
    """
    found = pooled.dims[2:]
    numbers = x if is_float(x.element) else layers.cast(net, x, "int64")
    padded = _padded(net, numbers, sizes, geometry, found)
    best, place = None, None
    for offsets in combinations(*(range(size) for size in sizes)):
        shifts = [offset * dilation for offset, dilation in zip(offsets, geometry.dilations, strict=True)]
        value = layers.slice_of(net, padded, [0, 0, *shifts], pooled.dims, [1, 1, *geometry.strides])
        here = _places(net, x, found, geometry, shifts, by_columns)
        if best is None or place is None:
            best, place = value, layers.expand(net, here, pooled.dims)
        else:
            better = layers.binary(net, "greater", value, best)
            best, place = layers.select(net, better, value, best), layers.select(net, better, here, place)
    assert place is not None
    return place


def _padded(net: Network, x: Value, sizes: Sequence[int], geometry: Geometry, found: Sequence[Dim]) -> Value:
    """The input with cells around it that are smaller than all numbers, as far as windows reach."""
    post: list[Dim] = [0, 0]
    for axis, (size, count) in enumerate(zip(sizes, found, strict=True)):
        reach = (count - 1) * geometry.strides[axis] + (size - 1) * geometry.dilations[axis] + 1
        post.append(maximum(reach - geometry.pre[axis] - x.dims[2 + axis], 0))
    kind = layers.numpy_dtype(x.element)
    lowest = net.constant(np.array(-np.inf if is_float(x.element) else np.iinfo(kind).min, kind))
    return layers.pad(net, x, [0, 0, *geometry.pre], post, "constant", lowest)


def _places(
    net: Network, x: Value, found: Sequence[Dim], geometry: Geometry, shifts: Sequence[int], by_columns: bool
) -> Value:
    """The place that each window sees at one of its cells."""
    spatial = list(range(2, x.rank))
    planes = layers.counting(net, "int64", x.dims[0] * x.dims[1])
    total = layers.reshape(net, planes, [*x.dims[:2], *[1] * len(found)])
    total = layers.binary(net, "prod", total, cells_of(net, x, spatial))
    for axis, count in enumerate(found):
        inner = spatial[:axis] if by_columns else spatial[axis + 1 :]
        own = layers.counting(net, "int64", count, shifts[axis] - geometry.pre[axis], geometry.strides[axis])
        own = layers.reshape(net, own, [count if k == axis + 2 else 1 for k in range(x.rank)])
        total = layers.binary(net, "sum", total, layers.binary(net, "prod", own, cells_of(net, x, inner)))
    return total


def cells_of(net: Network, x: Value, axes: Sequence[int]) -> Value:
    """How many cells these axes have together."""
    total = net.constant(np.array(1, np.int64))
    for axis in axes:
        total = layers.binary(net, "prod", total, layers.length_of(net, x, axis))
    return total
