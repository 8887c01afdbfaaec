"""Poolings that say where they found their results, and what takes these back to their places."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as combinations

import numpy as np

from mlirt.dialects.symbolic import Dim, maximum, product
from mlirt.dialects.tensor_types import is_float
from mlirt.frontend.onnx import layers
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.network import Network, Value
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.windows import Geometry, geometry_of


def places_of_maxima(
    net: Network, node: Node, x: Value, pooled: Value, sizes: Sequence[int], geometry: Geometry
) -> Value:
    """For each result of a max pooling the place of the first largest element, in the flattened input."""
    if geometry.mode.startswith("same"):
        raise node.unsupported(
            "its second output (Indices) needs sizes that are known at build time with this auto_pad"
        )
    found = pooled.dims[2:]
    numbers = x if is_float(x.element) else layers.cast(net, x, "int64")
    padded = _padded(net, numbers, sizes, geometry, found)
    best, place = None, None
    for offsets in combinations(*(range(size) for size in sizes)):
        shifts = [offset * dilation for offset, dilation in zip(offsets, geometry.dilations, strict=True)]
        value = layers.slice_of(net, padded, [0, 0, *shifts], pooled.dims, [1, 1, *geometry.strides])
        here = _places(net, node, x, found, geometry, shifts)
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
    net: Network, node: Node, x: Value, found: Sequence[Dim], geometry: Geometry, shifts: Sequence[int]
) -> Value:
    """The place that each window sees at one of its cells; rows are contiguous, or with storage_order 1 columns."""
    spatial = list(range(2, x.rank))
    by_columns = bool(node.integer("storage_order", 0))
    planes = layers.counting(net, "int64", x.dims[0] * x.dims[1])
    total = layers.reshape(net, planes, [*x.dims[:2], *[1] * len(found)])
    total = layers.binary(net, "prod", total, _cells(net, x, spatial))
    for axis, count in enumerate(found):
        inner = spatial[:axis] if by_columns else spatial[axis + 1 :]
        own = layers.counting(net, "int64", count, shifts[axis] - geometry.pre[axis], geometry.strides[axis])
        own = layers.reshape(net, own, [count if k == axis + 2 else 1 for k in range(x.rank)])
        total = layers.binary(net, "sum", total, layers.binary(net, "prod", own, _cells(net, x, inner)))
    return total


def _cells(net: Network, x: Value, axes: Sequence[int]) -> Value:
    """How many cells these axes have together."""
    total = net.constant(np.array(1, np.int64))
    for axis in axes:
        total = layers.binary(net, "prod", total, layers.length_of(net, x, axis))
    return total


@onnx_op("MaxUnpool", since=9)
def max_unpool(net: Network, node: Node) -> Value:
    """Zeros, with each element at the place that its index names."""
    x, indices, shape = node.input(0), node.input(1), node.known_integers(2, "the output's shape")
    sizes = node.integers("kernel_shape")
    if x.rank != len(sizes) + 2:
        raise node.invalid(f"expected a kernel_shape of {x.rank - 2} entries, got {sizes}")
    geometry = geometry_of(node, sizes, x.dims[2:])
    lengths: list[Dim] = [
        (length - 1) * geometry.strides[axis] + size - geometry.pre[axis] - geometry.post[axis]
        for axis, (length, size) in enumerate(zip(x.dims[2:], sizes, strict=True))
    ]
    small = [*x.dims[:2], *lengths]
    zeros = layers.expand(net, layers.scalar_like(net, 0, x, rank=1), [product(small)])
    flat = [layers.reshape(net, value, [product(x.dims)]) for value in (indices, x)]
    written = net.emit("scatter", [zeros, *flat], mode="element", axis=0, reduction="none")
    result = layers.reshape(net, written, small)
    if shape is None:
        return result
    if len(shape) != x.rank:
        raise node.invalid(f"expected {x.rank} lengths of the output, got {shape}")
    post = [wanted - have for wanted, have in zip(shape, small, strict=True)]
    return layers.pad(net, result, [0] * x.rank, post, "constant", None)
