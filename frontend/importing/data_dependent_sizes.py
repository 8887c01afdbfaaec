"""Lengths that only the run can tell: a symbol stands for each, and the network says where its value is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mlirt.dialects.length_requirements import LengthRequirement
from mlirt.dialects.symbolic import Dim, Expr, product, sym
from mlirt.dialects.trt.define_size import DefineSizeOp
from mlirt.dialects.trt.require_lengths import RequireLengthsOp
from mlirt.errors import InvalidModelError
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.dimension_names import identifier
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.source_node import SourceNode

# Updates of this place go nowhere.
_NOWHERE = 1 << 62


def size_of(net: Network, count: Value, prefix: str) -> Dim:
    """The length that a value with one element holds."""
    if count.array is not None:
        return int(count.array.reshape(-1)[0])
    symbol = net.fresh_name(identifier(prefix))
    word = net.ssa(layers.reshape(net, layers.cast(net, count, "int64"), []))
    net.append_at(DefineSizeOp(symbol, word))
    net.late_sizes[symbol] = word
    return sym(symbol)


def require_lengths(net: Network, node: SourceNode, requirement: LengthRequirement) -> None:
    """Let a run end whose lengths do not fulfil a requirement; raises `InvalidModelError` where none can."""
    holds = requirement.holds()
    if holds is False:
        raise node.invalid(requirement.explained())
    if holds is None:
        net.append_at(RequireLengthsOp(replace(requirement, layer=node.name)))


def sizes_of(net: Network, node: SourceNode, shape: Value) -> list[Dim]:
    """The lengths that a 1-D value holds; those that follow from the inputs' dimensions are no new symbols."""
    known = shape.dim_values
    return [
        length if known is not None and isinstance(length := known[k], int | Expr) else size_of(net, element, node.name)
        for k, element in enumerate(elements_of(net, node, shape))
    ]


def elements_of(net: Network, node: SourceNode, vector: Value) -> list[Value]:
    """The elements of a 1-D value of known length as 0-D int64 values."""
    (count,) = vector.dims if vector.rank == 1 else (None,)
    if not isinstance(count, int):
        raise node.unsupported(f"the length of {vector.type}, which says what it does, must be known")
    if count > layers.MAX_RANK:
        raise InvalidModelError(f"{node.label}: {count} numbers are more than a tensor has dimensions")
    whole = layers.cast(net, vector, "int64")
    return [layers.reshape(net, layers.along(net, whole, 0, k, 1), []) for k in range(count)]


def true_positions(net: Network, flags: Value, prefix: str) -> Value:
    """Where a boolean tensor, read in row-major order, is true: each finds its place by counting those before it."""
    length = product(flags.dims)
    flat = layers.reshape(net, flags, [length])
    ones = layers.cast(net, flat, "int64")
    count = size_of(net, layers.reduce(net, "sum", ones, [0], keep_dims=False), prefix)
    before = net.emit("cumulative", [ones], kind="sum", axis=0, exclusive=True)
    places = layers.select(net, flat, before, layers.scalar_like(net, _NOWHERE, before))
    nothing = layers.expand(net, net.constant(np.zeros(1, np.int64)), [count])
    numbers = layers.counting(net, "int64", length)
    return net.emit("scatter", [nothing, places, numbers], mode="element", axis=0, unique_indices=True)


def coordinates(net: Network, dims: Sequence[Dim], positions: Value) -> Value:
    """Positions in row-major order as coordinates, one row for each dimension."""
    rows = [
        net.emit("gather", [_along_axis(net, dims, axis), positions], mode="default", axis=0)
        for axis in range(len(dims))
    ]
    return layers.concatenate(net, [layers.unsqueeze(net, row, [0]) for row in rows], 0)


def _along_axis(net: Network, dims: Sequence[Dim], axis: int) -> Value:
    """For every element of a tensor its coordinate along one axis."""
    line = layers.counting(net, "int64", dims[axis])
    spread = layers.reshape(net, line, [dims[k] if k == axis else 1 for k in range(len(dims))])
    return layers.reshape(net, layers.expand(net, spread, dims), [product(dims)])


def clamped(net: Network, x: Value, low: Value, high: Value) -> Value:
    return layers.binary(net, "min", layers.binary(net, "max", x, low), high)


def number(net: Network, value: int) -> Value:
    """A 0-D int64 constant."""
    return net.constant(np.array(value, np.int64))
