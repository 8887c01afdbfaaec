"""Reads and writes at indices: embedding, gather, scatter, index, index_put, nonzero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlirt.dialects.broadcasting import common_length
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import is_bool, is_float
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.data_dependent_sizes import coordinates, true_positions
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op
from mlirt.frontend.torch.neutral_numbers import neutral_number
from mlirt.frontend.torch.truth_values import as_bool

_OLD_REDUCTIONS = {"add": "add", "multiply": "mul"}
_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "mean": "add"}


@aten_op("embedding.default")
def embedding(net: Network, call: Call) -> Value:
    return net.emit("gather", [call.value("weight"), call.value("indices")], mode="default", axis=0)


@aten_op("index_select.default")
def index_select(net: Network, call: Call) -> Value:
    x, index = call.value("self"), call.value("index")
    if x.rank == 0:
        return x
    index = layers.reshape(net, index, [1]) if index.rank == 0 else index
    return net.emit("gather", [x, index], mode="default", axis=call.axis("dim", x.rank))


@aten_op("gather.default")
def gather(net: Network, call: Call) -> Value:
    x, index = call.value("self"), call.value("index")
    if x.rank == 0:
        return layers.expand(net, layers.with_rank(net, x, index.rank), index.dims)
    return net.emit("gather", [x, index], mode="element", axis=call.axis("dim", x.rank))


@aten_op(
    "scatter.src",
    "scatter.value",
    "scatter.reduce",
    "scatter.value_reduce",
    "scatter_add.default",
    "scatter_reduce.two",
)
def scatter(net: Network, call: Call) -> Value:
    x, index = call.value("self"), call.value("index")
    if "value" in call.arguments:
        updates = layers.expand(net, layers.with_rank(net, call.operand("value", call.element), x.rank), index.dims)
    else:
        # Only as much of the source is read as there are indices.
        source = call.value("src")
        updates = layers.slice_of(net, source, [0] * source.rank, index.dims)
    reduction = "add" if call.operator == "aten.scatter_add.default" else "none"
    axis = call.axis("dim", x.rank)
    if call.operator in ("aten.scatter.reduce", "aten.scatter.value_reduce"):
        reduction = _OLD_REDUCTIONS[call.text("reduce")]
    elif "reduce" in call.arguments:
        return _reduced(net, call, x, index, updates, axis)
    return net.emit("scatter", [x, index, updates], mode="element", axis=axis, reduction=reduction)


def _reduced(net: Network, call: Call, x: Value, index: Value, updates: Value, axis: int) -> Value:
    """Elements that meet at a place, with what is there already, unless `include_self` is false."""
    kind, own = call.text("reduce"), call.flag("include_self")
    reduction = _REDUCTIONS.get(kind)
    if reduction is None:
        raise call.unsupported(f"the reduction {kind!r} is not known")
    ones = layers.expand(net, layers.scalar_like(net, 1, updates), updates.dims)
    start = layers.expand(net, layers.scalar_like(net, 1 if own else 0, x), x.dims)
    needs_count = kind == "mean" or not own
    settings = {"mode": "element", "axis": axis}
    count = net.emit("scatter", [start, index, ones], reduction="add", **settings) if needs_count else None
    if count is not None and not own:
        nothing = layers.scalar_like(net, 0, count)
        x = layers.select(net, layers.binary(net, "greater", count, nothing), neutral_number(net, kind, x), x)
    found = net.emit("scatter", [x, index, updates], reduction=reduction, **settings)
    if kind != "mean" or count is None:
        return found
    count = layers.binary(net, "max", count, layers.scalar_like(net, 1, count))
    return layers.binary(net, "div" if is_float(x.element) else "floor_div", found, count)


@dataclass(frozen=True)
class _Indices:
    """Integer indices of some axes of a tensor, of one shape."""

    axes: list[int]
    values: list[Value]
    dims: list[Dim]

    @property
    def together(self) -> bool:
        return self.axes == list(range(self.axes[0], self.axes[-1] + 1))


def _indices(net: Network, call: Call, x: Value) -> _Indices:
    """The indices broadcast to one shape; a mask is the places where it is true."""
    axes: list[int] = []
    values: list[Value] = []
    axis = 0
    for index in call.arguments["indices"]:
        if index is None:
            axis += 1
        elif is_bool(index.element):
            places = true_positions(net, index, call.name)
            found = coordinates(net, index.dims, places)
            for row in range(index.rank):
                axes.append(axis + row)
                values.append(layers.squeeze(net, layers.along(net, found, 0, row, 1), [0]))
            axis += index.rank
        else:
            axes.append(axis)
            values.append(layers.cast(net, index, "int64"))
            axis += 1
    values = layers.aligned(net, values)
    dims = [common_length([value.dims[k] for value in values]) for k in range(values[0].rank)]
    return _Indices(axes, [layers.expand(net, value, dims) for value in values], dims)


@aten_op("index.Tensor")
def index(net: Network, call: Call) -> Value:
    """NumPy's advanced indexing: the indices' dimensions stand where the axes stood, or first if these are apart."""
    x = call.value("self")
    found = _indices(net, call, x)
    if len(found.axes) == 1:
        return net.emit("gather", [x, found.values[0]], mode="default", axis=found.axes[0])
    rest = [axis for axis in range(x.rank) if axis not in found.axes]
    front = layers.transpose(net, x, [*found.axes, *rest])
    picked = net.emit("gather", [front, _joined(net, found)], mode="nd", num_elementwise_dims=0)
    if not found.together:
        return picked
    count, before = len(found.dims), found.axes[0]
    order = [*range(count, count + before), *range(count), *range(count + before, picked.rank)]
    return layers.transpose(net, picked, order)


def _joined(net: Network, found: _Indices) -> Value:
    """The indices as coordinates in a last dimension."""
    count = len(found.dims)
    return layers.concatenate(net, [layers.unsqueeze(net, value, [count]) for value in found.values], count)


@aten_op("index_put.default", "_unsafe_index_put.default")
def index_put(net: Network, call: Call) -> Value:
    """A copy of the tensor with values written, or added, at indices."""
    x, values = call.value("self"), call.operand("values", call.element)
    given = call.arguments["indices"]
    first = given[0]
    if len(given) == 1 and is_bool(first.element) and values.dims in ((), (1,)) and not call.flag("accumulate"):
        mask = layers.reshape(net, first, [*first.dims, *[1] * (x.rank - first.rank)])
        return layers.select(net, mask, values, x)
    found = _indices(net, call, x)
    rest = [axis for axis in range(x.rank) if axis not in found.axes]
    order = [*found.axes, *rest]
    front = layers.transpose(net, x, order)
    behind = [x.dims[axis] for axis in rest]
    if found.together and found.axes[0] > 0:
        before, count = found.axes[0], len(found.dims)
        shape = [*behind[:before], *found.dims, *behind[before:]]
        updates = layers.expand(net, layers.with_rank(net, values, len(shape)), shape)
        moved = [*range(before, before + count), *range(before), *range(before + count, len(shape))]
        updates = layers.transpose(net, updates, moved)
    else:
        shape = [*found.dims, *behind]
        updates = layers.expand(net, layers.with_rank(net, values, len(shape)), shape)
    reduction = "add" if call.flag("accumulate") else "none"
    written = net.emit("scatter", [front, _joined(net, found), updates], mode="nd", reduction=reduction)
    return layers.transpose(net, written, [order.index(axis) for axis in range(x.rank)])


@aten_op("index_copy.default", "index_add.default", "index_reduce.default")
def along_index(net: Network, call: Call) -> Value:
    """Slices written, added, or reduced with others, at places along one axis."""
    given, places, source = call.value("self"), call.value("index"), call.value("source")
    x = given if given.rank else layers.reshape(net, given, [1])
    source = source if source.rank else layers.reshape(net, source, [1])
    axis = call.axis("dim", x.rank)
    shape = [source.dims[axis] if k == axis else 1 for k in range(x.rank)]
    spread = layers.expand(net, layers.reshape(net, layers.cast(net, places, "int64"), shape), source.dims)
    if "alpha" in call.arguments and call.arguments["alpha"] != 1:
        source = layers.binary(net, "prod", source, call.operand("alpha", call.element))
    if "reduce" in call.arguments:
        found = _reduced(net, call, x, spread, source, axis)
    else:
        reduction = "add" if call.operator == "aten.index_add.default" else "none"
        found = net.emit("scatter", [x, spread, source], mode="element", axis=axis, reduction=reduction)
    return layers.reshape(net, found, given.dims)


@aten_op("put.default")
def put(net: Network, call: Call) -> Value:
    """Elements written, or added, at places of the flattened tensor."""
    x, places, source = call.value("self"), call.value("index"), call.value("source")
    count, several = product(x.dims), product(places.dims)
    flat, places, source = (
        layers.reshape(net, one, [length]) for one, length in ((x, count), (places, several), (source, several))
    )
    wrapped = layers.binary(net, "sum", places, call.size_value(count))
    below = layers.binary(net, "less", places, layers.scalar_like(net, 0, places))
    places = layers.select(net, below, wrapped, places)
    reduction = "add" if call.flag("accumulate") else "none"
    written = net.emit("scatter", [flat, places, source], mode="element", axis=0, reduction=reduction)
    return layers.reshape(net, written, x.dims)


@aten_op("nonzero.default")
def nonzero(net: Network, call: Call) -> Value:
    """Coordinates of the elements that are not 0, a row for each."""
    x = as_bool(net, call.value("self"))
    found = coordinates(net, x.dims, true_positions(net, x, call.name))
    return layers.transpose(net, found, [1, 0])


@aten_op("masked_select.default")
def masked_select(net: Network, call: Call) -> Value:
    left, mask = layers.aligned(net, [call.value("self"), call.value("mask")])
    shape = [common_length(pair) for pair in zip(left.dims, mask.dims, strict=True)]
    x, chosen = (layers.expand(net, value, shape) for value in (left, mask))
    flat = layers.reshape(net, x, [product(shape)])
    return net.emit("gather", [flat, true_positions(net, chosen, call.name)], mode="default", axis=0)


@aten_op("_embedding_bag.default", "_embedding_bag_forward_only.default")
def embedding_bag(net: Network, call: Call) -> Sequence[Value]:
    """Sums, means or maxima of rows: products with a matrix that says which bag each belongs to, or its mask."""
    mode, padding = call.integer("mode"), call.integer("padding_idx")
    rows = net.emit("gather", [call.value("weight"), call.value("indices")], mode="default", axis=0)
    offsets = layers.cast(net, call.value("offsets"), "int64")
    count, bags = rows.dims[0], call.result_dims[0]
    place = layers.reshape(net, layers.counting(net, "int64", count), [1, count])
    ends = layers.reshape(net, offsets, [offsets.dims[0], 1])
    begun = layers.cast(net, layers.binary(net, "less_equal", ends, place), "int64")
    bag = layers.binary(
        net,
        "sub",
        layers.reduce(net, "sum", begun, [0]),
        layers.scalar_like(net, 1, begun),
    )
    numbers = layers.reshape(net, layers.counting(net, "int64", bags), [bags, 1])
    weights = layers.cast(net, layers.binary(net, "equal", numbers, bag), rows.element)
    if padding >= 0:
        places = layers.reshape(net, call.value("indices"), [1, count])
        kept = layers.unary(net, "not", layers.binary(net, "equal", places, layers.scalar_like(net, padding, places)))
        weights = layers.binary(net, "prod", weights, layers.cast(net, kept, weights.element))
    if mode == 2:
        return [_largest_of_bags(net, rows, weights)]
    sample = call.optional("per_sample_weights")
    if sample is not None:
        weights = layers.binary(net, "prod", weights, layers.reshape(net, sample, [1, count]))
    total = layers.matrix_multiply(net, weights, rows)
    if mode == 1:
        size = layers.reduce(net, "sum", weights, [1])
        total = layers.binary(net, "div", total, layers.binary(net, "max", size, layers.scalar_like(net, 1, size)))
    return [total]


def _largest_of_bags(net: Network, rows: Value, belongs: Value) -> Value:
    """The largest of each column among the rows of each bag; 0 for a bag without rows."""
    nothing = layers.scalar_like(net, 0.0, belongs)
    inside = layers.unsqueeze(net, layers.binary(net, "greater", belongs, nothing), [2])
    rows = layers.unsqueeze(net, rows, [0])
    masked = layers.select(net, inside, rows, layers.scalar_like(net, -math.inf, rows))
    found = layers.reduce(net, "max", masked, [1], keep_dims=False)
    is_empty = layers.binary(net, "equal", layers.reduce(net, "max", belongs, [1]), nothing)
    return layers.select(net, is_empty, nothing, found)


@aten_op("one_hot.default")
def one_hot(net: Network, call: Call) -> Value:
    x, count = call.value("self"), call.result_dims[-1]
    places = layers.reshape(net, layers.counting(net, "int64", count), [*[1] * x.rank, count])
    return layers.cast(net, layers.binary(net, "equal", layers.unsqueeze(net, x, [x.rank]), places), "int64")


@aten_op("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(net: Network, call: Call) -> Value:
    x, mask = call.value("self"), call.value("mask")
    return layers.select(net, mask, call.operand("value", call.element), x)


@aten_op("masked_scatter.default")
def masked_scatter(net: Network, call: Call) -> Value:
    """Where the mask is true the elements of the source, one after the other."""
    source, dims = call.value("source"), call.result_dims
    x, mask = (
        layers.expand(net, layers.with_rank(net, call.value(name), len(dims)), dims) for name in ("self", "mask")
    )
    length = product(x.dims)
    ones = layers.cast(net, layers.reshape(net, mask, [length]), "int64")
    place = net.emit("cumulative", [ones], kind="sum", axis=0, exclusive=True)
    limit = layers.binary(net, "sub", call.size_value(product(source.dims)), net.constant(np.array(1, np.int64)))
    flat = layers.reshape(net, source, [product(source.dims)])
    taken = net.emit("gather", [flat, layers.binary(net, "min", place, limit)], mode="default", axis=0)
    return layers.select(net, mask, layers.reshape(net, taken, x.dims), x)
