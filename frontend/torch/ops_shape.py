"""Views: the same elements in another shape or order, repeated or in blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirt.dialects.symbolic import Dim, product
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op


@aten_op(
    "view.default",
    "_unsafe_view.default",
    "reshape.default",
    "flatten.using_ints",
    "unflatten.int",
    "squeeze.default",
    "squeeze.dim",
    "squeeze.dims",
    "unsqueeze.default",
)
def view(net: Network, call: Call) -> Value:
    """The shape that PyTorch inferred; the elements stay in their order."""
    return layers.reshape(net, call.value("self"), call.result_dims)


@aten_op("permute.default")
def permute(net: Network, call: Call) -> Value:
    x = call.value("self")
    return layers.transpose(net, x, [call.from_front(axis, x.rank) for axis in call.integers("dims")])


@aten_op("transpose.int", "t.default")
def transpose(net: Network, call: Call) -> Value:
    x = call.value("self")
    order = list(range(x.rank))
    if call.operator == "aten.t.default":
        return layers.transpose(net, x, order[::-1])
    if not order:
        return x
    first, second = call.axis("dim0", x.rank), call.axis("dim1", x.rank)
    order[first], order[second] = order[second], order[first]
    return layers.transpose(net, x, order)


@aten_op("expand.default")
def expand(net: Network, call: Call) -> Value:
    return expanded(net, call.value("self"), call.result_dims)


def expanded(net: Network, x: Value, dims: Sequence[Dim]) -> Value:
    return layers.expand(net, layers.with_rank(net, x, len(dims)), dims)


@aten_op("repeat.default", "tile.default")
def repeat(net: Network, call: Call) -> Value:
    x, counts = call.value("self"), call.dims("repeats" if "repeats" in call.arguments else "dims")
    ones: list[Dim] = [1] * max(x.rank - len(counts), 0)
    return layers.tile(net, layers.with_rank(net, x, len(counts)), [*ones, *counts])


@aten_op("repeat_interleave.self_int")
def repeat_interleave(net: Network, call: Call) -> Value:
    """Each element several times, one behind the other."""
    x = call.value("self")
    if not call.given("dim"):
        x = layers.reshape(net, x, [product(x.dims)])
    axis = call.axis("dim", x.rank) if call.given("dim") else 0
    count: Dim = call.arguments["repeats"]
    apart = layers.unsqueeze(net, x, [axis + 1])
    spread = layers.expand(net, apart, [*apart.dims[: axis + 1], count, *apart.dims[axis + 2 :]])
    return layers.reshape(net, spread, call.result_dims)


@aten_op("flip.default")
def flip(net: Network, call: Call) -> Value:
    x = call.value("self")
    for axis in call.axes("dims", x.rank) if call.integers("dims") else []:
        x = layers.reversed_along(net, x, axis)
    return x


@aten_op("roll.default")
def roll(net: Network, call: Call) -> Value:
    """Elements that leave at the end come back at the front."""
    x, shifts, axes = call.value("self"), call.integers("shifts"), call.integers("dims")
    if not axes:
        flat = layers.reshape(net, x, [product(x.dims)])
        return layers.reshape(net, _rolled(net, flat, 0, shifts[0]), x.dims)
    for shift, axis in zip(shifts, axes, strict=True):
        x = _rolled(net, x, call.from_front(axis, x.rank), shift)
    return x


def _rolled(net: Network, x: Value, axis: int, shift: int) -> Value:
    length = x.dims[axis]
    shift = shift % length if isinstance(length, int) and length else shift
    if shift == 0 or length == 0:
        return x
    cut = length - shift if shift > 0 else -shift
    parts = [layers.along(net, x, axis, cut, length - cut), layers.along(net, x, axis, 0, cut)]
    return layers.concatenate(net, parts, axis)


@aten_op("pixel_shuffle.default")
def pixel_shuffle(net: Network, call: Call) -> Value:
    x, block = call.value("self"), call.integer("upscale_factor")
    *batch, channels, height, width = x.dims
    depth, rank = channels // (block * block), len(batch)
    parts = layers.reshape(net, x, [*batch, depth, block, block, height, width])
    order = [*range(rank), *(rank + k for k in (0, 3, 1, 4, 2))]
    return layers.reshape(net, layers.transpose(net, parts, order), call.result_dims)


@aten_op("pixel_unshuffle.default")
def pixel_unshuffle(net: Network, call: Call) -> Value:
    x, block = call.value("self"), call.integer("downscale_factor")
    *batch, channels, height, width = x.dims
    rank = len(batch)
    parts = layers.reshape(net, x, [*batch, channels, height // block, block, width // block, block])
    order = [*range(rank), *(rank + k for k in (0, 2, 4, 1, 3))]
    return layers.reshape(net, layers.transpose(net, parts, order), call.result_dims)


@aten_op("channel_shuffle.default", "native_channel_shuffle.default")
def channel_shuffle(net: Network, call: Call) -> Value:
    x, groups = call.value("self"), call.integer("groups")
    batch, channels, *rest = x.dims
    parts = layers.reshape(net, x, [batch, groups, channels // groups, *rest])
    swapped = layers.transpose(net, parts, [0, 2, 1, *range(3, parts.rank)])
    return layers.reshape(net, swapped, x.dims)


@aten_op("diagonal.default")
def diagonal(net: Network, call: Call) -> Value:
    """The elements at equal places of two axes, which become the last axis."""
    x, offset = call.value("self"), call.integer("offset")
    first, second = call.axis("dim1", x.rank), call.axis("dim2", x.rank)
    rest = [axis for axis in range(x.rank) if axis not in (first, second)]
    x = layers.transpose(net, x, [first, second, *rest])
    places = _diagonal_places(net, offset, call.result_dims[-1])
    found = net.emit("gather", [x, places], mode="nd", num_elementwise_dims=0)
    return layers.transpose(net, found, [*range(1, found.rank), 0])


@aten_op("as_strided.default")
def as_strided(net: Network, call: Call) -> Value:
    """Any view by strides: a gather from the flattened tensor, which must be one as PyTorch stores it."""
    x = call.value("self")
    flat = layers.reshape(net, x, [product(x.dims)])
    return net.emit("gather", [flat, net.constant(_strided_places(call))], mode="default", axis=0)


@aten_op("as_strided_scatter.default")
def as_strided_scatter(net: Network, call: Call) -> Value:
    """A copy with other elements at the places of such a view."""
    x, source, places = call.value("self"), call.value("src"), _strided_places(call).reshape(-1)
    flat = layers.reshape(net, x, [product(x.dims)])
    updates = layers.reshape(net, source, [places.size])
    written = net.emit("scatter", [flat, net.constant(places), updates], mode="element", axis=0, reduction="none")
    return layers.reshape(net, written, x.dims)


def _strided_places(call: Call) -> np.ndarray:
    sizes, strides = call.integers("size"), call.integers("stride")
    first = call.integer("storage_offset") if call.given("storage_offset") else 0
    places = np.full(sizes, first, np.int64)
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        shape = [size if k == axis else 1 for k in range(len(sizes))]
        places = places + (stride * np.arange(size)).reshape(shape)
    return places


@aten_op("resize.default")
def resized(net: Network, call: Call) -> Value:
    """The first elements in another shape; what there were none for is memory without contents, zeros here."""
    x, wanted = call.value("self"), product(call.result_dims)
    count = product(x.dims)
    flat = layers.reshape(net, x, [count])
    if not isinstance(count, int) or not isinstance(wanted, int):
        raise call.unsupported("its lengths must be known when the engine is built")
    if wanted > count:
        rest = layers.expand(net, layers.scalar_like(net, 0, x, 1), [wanted - count])
        flat = layers.concatenate(net, [flat, rest], 0)
    return layers.reshape(net, layers.along(net, flat, 0, 0, wanted), call.result_dims)


@aten_op("diagonal_scatter.default")
def diagonal_scatter(net: Network, call: Call) -> Value:
    """A copy with other elements at equal places of two axes."""
    x, source = call.value("self"), call.value("src")
    first, second = call.axis("dim1", x.rank), call.axis("dim2", x.rank)
    rest = [axis for axis in range(x.rank) if axis not in (first, second)]
    order = [first, second, *rest]
    places = _diagonal_places(net, call.integer("offset"), source.dims[-1])
    updates = layers.transpose(net, source, [source.rank - 1, *range(source.rank - 1)])
    front = layers.transpose(net, x, order)
    written = net.emit("scatter", [front, places, updates], mode="nd", reduction="none")
    return layers.transpose(net, written, [order.index(axis) for axis in range(x.rank)])


def _diagonal_places(net: Network, offset: int, count: Dim) -> Value:
    """The row and the column of each element of a diagonal."""
    rows = layers.counting(net, "int64", count, start=max(-offset, 0))
    columns = layers.counting(net, "int64", count, start=max(offset, 0))
    return layers.concatenate(net, [layers.unsqueeze(net, line, [1]) for line in (rows, columns)], 1)
