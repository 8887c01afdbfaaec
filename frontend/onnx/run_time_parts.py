"""Slice and Pad by numbers that only the run tells: a gather along each axis, of places that the run computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from mlirt.dialects.length_requirements import at_least
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.trt.require import RequireOp
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.data_dependent_sizes import clamped, elements_of, number, require_lengths, size_of
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.run_time_axes import around, axes_of_run, lengths_of, shaped, with_length

Bounds: TypeAlias = tuple[Value, Value, Value, "int | None"]
"""Start, end and step of a part, and the step where it is known."""


def sliced_at_run_time(net: Network, node: Node, axes: Sequence[int], steps: Sequence[int] | None) -> Value:
    """Along each axis a gather of the positions that `[start:end:step]` names; steps too may come from the run."""
    x = node.input(0)
    for axis, bounds in zip(axes, _bounds(net, node, len(axes), steps), strict=True):
        x = _sliced(net, node, x, node.from_front(axis, x.rank), bounds)
    return x


def sliced_along_axes_of_run(net: Network, node: Node) -> Value:
    """The same where only a run tells the axes."""
    x, given = node.input(0), node.optional(4)
    axes = axes_of_run(net, node, 3, x.rank, distinct=True)
    array = None if given is None else given.array
    steps = [1] * len(axes) if given is None else None if array is None else [int(step) for step in array.reshape(-1)]
    lengths = lengths_of(net, x)
    for axis, bounds in zip(axes, _bounds(net, node, len(axes), steps), strict=True):
        x = _sliced(net, node, around(net, node, x, lengths, axis), 1, bounds)
        lengths = with_length(net, lengths, axis, layers.length_of(net, x, 1))
    return shaped(net, node, x, lengths)


def _bounds(net: Network, node: Node, count: int, steps: Sequence[int] | None) -> list[Bounds]:
    starts, ends = (elements_of(net, node, node.input(k)) for k in (1, 2))
    strides = elements_of(net, node, node.input(4)) if steps is None else [number(net, step) for step in steps]
    if not len(starts) == len(ends) == len(strides) == count or (steps is not None and 0 in steps):
        raise node.invalid("expected equal numbers of starts, ends, axes and steps, and steps other than 0")
    if steps is None:
        _require_steps(net, node)
    return list(zip(starts, ends, strides, [None] * count if steps is None else steps, strict=True))


def _require_steps(net: Network, node: Node) -> None:
    steps = layers.cast(net, node.input(4), "int64")
    sizes = layers.unary(net, "abs", steps)
    smallest = layers.reduce(net, "min", sizes, [0], keep_dims=False)
    holds = layers.binary(net, "greater", smallest, number(net, 0))
    net.append_at(RequireOp(net.ssa(holds), f"{node.label}: expected steps other than 0"))


def _sliced(net: Network, node: Node, x: Value, axis: int, bounds: Bounds) -> Value:
    start, end, step, known_step = bounds
    length, zero, one = layers.length_of(net, x, axis), number(net, 0), number(net, 1)
    if known_step is None:
        backwards = layers.binary(net, "less", step, zero)
        turn = layers.select(net, backwards, one, zero)
        size = layers.unary(net, "abs", step)
    else:
        turn, size = (one if known_step < 0 else zero), number(net, abs(known_step))
    # One before the front ends a walk backwards.
    highest = layers.binary(net, "sub", length, turn)
    first = clamped(net, _from_front(net, start, length), zero, highest)
    last = clamped(net, _from_front(net, end, length), layers.binary(net, "sub", zero, turn), highest)
    sign = layers.binary(net, "sub", one, layers.binary(net, "sum", turn, turn))
    span = layers.binary(net, "prod", layers.binary(net, "sub", last, first), sign)
    rounded = layers.binary(net, "sum", span, layers.binary(net, "sub", size, one))
    count = layers.binary(net, "floor_div", rounded, size)
    total = size_of(net, layers.binary(net, "max", count, zero), node.name)
    offsets = layers.binary(net, "prod", layers.counting(net, "int64", total), step)
    return net.emit("gather", [x, layers.binary(net, "sum", offsets, first)], mode="default", axis=axis)


def _from_front(net: Network, bound: Value, length: Value) -> Value:
    """A bound that may be counted from the end."""
    from_end = layers.binary(net, "sum", bound, length)
    return layers.select(net, layers.binary(net, "less", bound, number(net, 0)), from_end, bound)


def padded_at_run_time(net: Network, node: Node, axes: Sequence[int], mode: str, value: Value | None) -> Value:
    """Amounts that only a run tells, in front of and behind each axis."""
    x = node.input(0)
    for axis, amounts in zip(axes, _amounts(net, node, len(axes)), strict=True):
        x = _padded(net, node, x, axis, amounts, (mode, value))
    return x


def padded_along_axes_of_run(net: Network, node: Node, mode: str, value: Value | None) -> Value:
    """The same where only a run tells the axes."""
    x = node.input(0)
    axes = axes_of_run(net, node, 3, x.rank, distinct=True)
    lengths = lengths_of(net, x)
    for axis, amounts in zip(axes, _amounts(net, node, len(axes)), strict=True):
        x = _padded(net, node, around(net, node, x, lengths, axis), 1, amounts, (mode, value))
        lengths = with_length(net, lengths, axis, layers.length_of(net, x, 1))
    return shaped(net, node, x, lengths)


def _amounts(net: Network, node: Node, count: int) -> list[tuple[Value, Value]]:
    """For each axis how many elements come in front and behind."""
    pads = node.input(1)
    if pads.dims != (2 * count,):
        raise node.invalid(f"expected {2 * count} pads, got {pads.type}")
    before, after = (elements_of(net, node, layers.along(net, pads, 0, first, count)) for first in (0, count))
    return list(zip(before, after, strict=True))


def _padded(
    net: Network, node: Node, x: Value, axis: int, amounts: tuple[Value, Value], cells: tuple[str, Value | None]
) -> Value:
    """An axis with elements in front and behind, or without some that it has where an amount is negative."""
    fault = f"axis {axis} of length {{left}} is padded by amounts that the run computes; it needs an element"
    require_lengths(net, node, at_least("", fault, x.dims[axis], 1))
    (before, after), (mode, value) = amounts, cells
    length, zero = layers.length_of(net, x, axis), number(net, 0)
    whole = layers.binary(net, "sum", layers.binary(net, "sum", length, before), after)
    count = size_of(net, layers.binary(net, "max", whole, zero), node.name)
    places = layers.binary(net, "sub", layers.counting(net, "int64", count), before)
    result = net.emit("gather", [x, _source(net, places, length, mode)], mode="default", axis=axis)
    if mode != "constant":
        return result
    inside = layers.binary(
        net,
        "and",
        layers.binary(net, "greater_equal", places, zero),
        layers.binary(net, "less", places, length),
    )
    shape: list[Dim] = [count if k == axis else 1 for k in range(x.rank)]
    fill = layers.scalar_like(net, 0, result) if value is None else layers.cast(net, value, x.element)
    fill = layers.reshape(net, fill, [1] * x.rank)
    return layers.select(net, layers.reshape(net, inside, shape), result, fill)


def _source(net: Network, places: Value, length: Value, mode: str) -> Value:
    """Where the elements at places beyond both ends are taken from."""
    last = layers.binary(net, "sub", length, number(net, 1))
    if mode == "wrap":
        return _remainder(net, places, length)
    if mode == "reflect":
        period = layers.binary(net, "max", layers.binary(net, "sum", last, last), number(net, 1))
        way = layers.binary(net, "sub", _remainder(net, places, period), last)
        return layers.binary(net, "sub", last, layers.unary(net, "abs", way))
    return clamped(net, places, number(net, 0), last)


def _remainder(net: Network, places: Value, by: Value) -> Value:
    whole = layers.binary(net, "floor_div", places, by)
    return layers.binary(net, "sub", places, layers.binary(net, "prod", whole, by))
