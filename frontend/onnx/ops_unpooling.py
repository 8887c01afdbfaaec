"""Poolings that say where they found their results, and what takes these back to their places."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as combinations

import numpy as np

from mlirt.dialects.symbolic import Dim, product
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
    lengths = [length for length in x.dims[2:] if isinstance(length, int)]
    if len(lengths) != len(sizes):
        raise node.unsupported("its second output (Indices) needs spatial sizes that are known at build time")
    found = [length for length in pooled.dims[2:] if isinstance(length, int)]
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


def _padded(net: Network, x: Value, sizes: Sequence[int], geometry: Geometry, found: Sequence[int]) -> Value:
    """The input with cells around it that are smaller than all numbers, as far as windows reach."""
    post: list[Dim] = [0, 0]
    for axis, (size, count) in enumerate(zip(sizes, found, strict=True)):
        reach = (count - 1) * geometry.strides[axis] + (size - 1) * geometry.dilations[axis] + 1
        post.append(max(reach - geometry.pre[axis] - int(str(x.dims[2 + axis])), 0))
    kind = layers.numpy_dtype(x.element)
    lowest = net.constant(np.array(-np.inf if is_float(x.element) else np.iinfo(kind).min, kind))
    return layers.pad(net, x, [0, 0, *geometry.pre], post, "constant", lowest)


def _places(
    net: Network, node: Node, x: Value, found: Sequence[int], geometry: Geometry, shifts: Sequence[int]
) -> Value:
    """The place that each window sees at one of its cells; rows are contiguous, or with storage_order 1 columns."""
    spatial = [int(str(length)) for length in x.dims[2:]]
    by_columns = bool(node.integer("storage_order", 0))
    total: np.ndarray[tuple[int, ...], np.dtype[np.int64]] = np.zeros([1] * len(found), np.int64)
    for axis, count in enumerate(found):
        inner = spatial[:axis] if by_columns else spatial[axis + 1 :]
        own = np.arange(count) * geometry.strides[axis] + shifts[axis] - geometry.pre[axis]
        total = total + (own * int(np.prod(inner, dtype=np.int64))).reshape(
            [-1 if k == axis else 1 for k in range(len(found))]
        )
    planes = layers.counting(net, "int64", x.dims[0] * x.dims[1], 0, int(np.prod(spatial, dtype=np.int64)))
    base = layers.reshape(net, planes, [x.dims[0], x.dims[1], *[1] * len(found)])
    return layers.binary(net, "sum", base, net.constant(total[None, None]))


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
