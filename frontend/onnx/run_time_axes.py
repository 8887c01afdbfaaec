"""Axes that only a run tells: their number is known, and so are the ranks; lengths follow by shape arithmetic.

A layer along such an axis works on its tensor as [outer, length, inner], where the axis is always the second one.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.dialects.symbolic import Dim, Expr, product
from mlirt.dialects.trt.require import RequireOp
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.data_dependent_sizes import elements_of, number, size_of
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.node import Node


def are_of_run(node: Node, k: int) -> bool:
    """Whether only a run tells the axes that input `k` holds, while their number is known."""
    given = node.optional(k)
    if given is None or given.array is not None or given.rank > 1:
        return False
    return given.rank == 0 or (isinstance(given.dims[0], int) and given.dims[0] > 0)


def axes_of_run(net: Network, node: Node, k: int, rank: int, *, distinct: bool = False) -> list[Value]:
    """The axes that input `k` holds, 0-D and counted from the front. A run in which one does not exist ends with an
    error, and so does one in which two are the same where they are to be `distinct`.
    """
    axes = elements_of(net, node, _listed(net, node.input(k)))
    places = [_from_front(net, axis, rank) for axis in axes]
    for axis in places:
        _require(net, node, _is_below(net, axis, rank), f"an axis does not exist; there are {rank} dimensions")
    if distinct:
        for index, axis in enumerate(places):
            for other in places[:index]:
                differ = layers.unary(net, "not", layers.binary(net, "equal", axis, other))
                _require(net, node, differ, "an axis is given twice")
    return places


def count_of_axes(node: Node, k: int) -> int:
    """How many axes input `k` holds, which only a run tells."""
    count = product(node.input(k).dims)
    assert isinstance(count, int)
    return count


def lengths_of(net: Network, x: Value) -> list[Value]:
    """The lengths of all axes."""
    return [layers.length_of(net, x, axis) for axis in range(x.rank)]


def shaped(net: Network, node: Node, x: Value, lengths: Sequence[Value]) -> Value:
    """The elements of `x` with lengths that the run computes."""
    return layers.reshape(net, x, [_dim(net, node, length) for length in lengths])


def around(net: Network, node: Node, x: Value, lengths: Sequence[Value], axis: Value) -> Value:
    """The elements of `x`, which has these lengths in their order, as [outer, length, inner] around an axis."""
    one = number(net, 1)
    outer, length, inner = one, one, one
    for place, own in enumerate(lengths):
        here = number(net, place)
        is_outer, is_inner = (layers.binary(net, "less", *pair) for pair in ((here, axis), (axis, here)))
        is_axis = layers.binary(net, "equal", here, axis)
        outer = layers.binary(net, "prod", outer, layers.select(net, is_outer, own, one))
        length = layers.binary(net, "prod", length, layers.select(net, is_axis, own, one))
        inner = layers.binary(net, "prod", inner, layers.select(net, is_inner, own, one))
    return shaped(net, node, x, [outer, length, inner])


def with_length(net: Network, lengths: Sequence[Value], axis: Value, length: Value) -> list[Value]:
    """The lengths, with another one for the axis."""
    return [
        layers.select(net, layers.binary(net, "equal", number(net, place), axis), length, own)
        for place, own in enumerate(lengths)
    ]


def without(net: Network, lengths: Sequence[Value], axes: Sequence[Value]) -> list[Value]:
    """The lengths of the other axes, in their order; the axes are distinct."""
    kept = [layers.unary(net, "not", one) for one in _chosen(net, axes, len(lengths))]
    before = _counted(net, kept)
    return [_found(net, lengths, kept, before, place, len(axes)) for place in range(len(lengths) - len(axes))]


def with_ones(net: Network, lengths: Sequence[Value], axes: Sequence[Value]) -> list[Value]:
    """The lengths with those of 1 put in, so that they stand at the axes, which are distinct."""
    rank = len(lengths) + len(axes)
    chosen = _chosen(net, axes, rank)
    before = _counted(net, [layers.unary(net, "not", one) for one in chosen])
    result: list[Value] = []
    for place in range(rank):
        length = number(net, 1)
        for source in range(max(place - len(axes), 0), min(place + 1, len(lengths))):
            is_source = layers.binary(net, "equal", before[place], number(net, source))
            length = layers.select(net, is_source, lengths[source], length)
        result.append(layers.select(net, chosen[place], number(net, 1), length))
    return result


def require_ones(net: Network, node: Node, lengths: Sequence[Value], axes: Sequence[Value]) -> None:
    """A run ends with an error where one of the axes is longer than 1, or empty."""
    one = number(net, 1)
    for is_axis, length in zip(_chosen(net, axes, len(lengths)), lengths, strict=True):
        fits = layers.binary(net, "equal", layers.select(net, is_axis, length, one), one)
        _require(net, node, fits, "the length of an axis is not 1")


def _found(
    net: Network, lengths: Sequence[Value], kept: Sequence[Value], before: Sequence[Value], place: int, left_out: int
) -> Value:
    """The length of the axis that is kept and has `place` such axes in front of it."""
    found = number(net, 1)
    for source in range(place, place + left_out + 1):
        is_place = layers.binary(net, "equal", before[source], number(net, place))
        found = layers.select(net, layers.binary(net, "and", kept[source], is_place), lengths[source], found)
    return found


def _chosen(net: Network, axes: Sequence[Value], rank: int) -> list[Value]:
    """For each of `rank` dimensions whether it is among the axes, of which there is at least one."""
    chosen: list[Value] = []
    for place in range(rank):
        is_one = [layers.binary(net, "equal", axis, number(net, place)) for axis in axes]
        whether = is_one[0]
        for other in is_one[1:]:
            whether = layers.binary(net, "or", whether, other)
        chosen.append(whether)
    return chosen


def _counted(net: Network, flags: Sequence[Value]) -> list[Value]:
    """For each flag how many before it are true."""
    zero, one = number(net, 0), number(net, 1)
    counts = [zero]
    for flag in flags[:-1]:
        counts.append(layers.binary(net, "sum", counts[-1], layers.select(net, flag, one, zero)))
    return counts


def _listed(net: Network, axes: Value) -> Value:
    return axes if axes.rank else layers.reshape(net, axes, [1])


def _from_front(net: Network, axis: Value, rank: int) -> Value:
    from_end = layers.binary(net, "sum", axis, number(net, rank))
    return layers.select(net, layers.binary(net, "less", axis, number(net, 0)), from_end, axis)


def _is_below(net: Network, axis: Value, rank: int) -> Value:
    is_low = layers.binary(net, "less", axis, number(net, rank))
    return layers.binary(net, "and", is_low, layers.binary(net, "less", number(net, -1), axis))


def _require(net: Network, node: Node, condition: Value, fault: str) -> None:
    net.append_at(RequireOp(net.ssa(condition), f"{node.label}: {fault}"))


def _dim(net: Network, node: Node, length: Value) -> Dim:
    """A length that follows from the inputs' dimensions is no new symbol."""
    known = length.dim_values
    dim = None if known is None else known.reshape(-1)[0]
    return dim if isinstance(dim, int | Expr) else size_of(net, length, node.name)
