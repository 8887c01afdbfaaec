"""Sequences of tensors: places must be known when the network is read, except to take one of several equal items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirt.dialects.symbolic import Dim, Expr, ceil_div, floor_div
from mlirt.dialects.trt.require import RequireOp
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.ops_slicing import require_parts
from mlirt.frontend.onnx.sequences import RowSequence, SequenceValue, merged_dims, sequence_input, stacked
from mlirt.frontend.onnx.tensor_reader import element

_FLOAT = 1
MAX_SEQUENCE = 4096


@onnx_op("SequenceConstruct", since=11)
def construct(net: Network, node: Node) -> Value:
    items = node.present()
    if not items or any(item.element != items[0].element for item in items):
        raise node.invalid("expected at least one item, and items of one element type")
    return SequenceValue(items, items[0].element)


@onnx_op("SequenceEmpty", since=11)
def empty(net: Network, node: Node) -> Value:
    return SequenceValue([], element(node.integer("dtype", _FLOAT), node.label))


@onnx_op("SequenceLength", since=11)
def length(net: Network, node: Node) -> Value:
    sequence = node.input(0)
    if isinstance(sequence, RowSequence):
        return layers.length_of(net, sequence.rows, 0)
    return net.constant(np.array(len(sequence_input(node).items), np.int64))


@onnx_op("SequenceInsert", since=11)
def insert(net: Network, node: Node) -> Value:
    sequence, item = sequence_input(node), node.input(1)
    if sequence.items and sequence.element != item.element:
        raise node.invalid(f"its items are {sequence.element_name}, the new one is {item.element_name}")
    count = len(sequence.items)
    place = _position(node, 2, count, count + 1)
    return SequenceValue([*sequence.items[:place], item, *sequence.items[place:]], item.element)


@onnx_op("SequenceErase", since=11)
def erase(net: Network, node: Node) -> Value:
    sequence = sequence_input(node)
    count = len(sequence.items)
    place = _position(node, 1, count - 1, count)
    return SequenceValue([*sequence.items[:place], *sequence.items[place + 1 :]], sequence.element)


@onnx_op("SequenceAt", since=11)
def at(net: Network, node: Node) -> Value:
    """An item; at a place that only the run knows items of one shape lie in one tensor, of which a row is taken."""
    first, place = node.input(0), node.input(1)
    if isinstance(first, RowSequence):
        return _row(net, node, first.rows, place)
    items = sequence_input(node).items
    alike = len({item.type for item in items}) == 1
    if place.array is not None or not alike:
        return items[_position(node, 1, 0, len(items))]
    return _row(net, node, stacked(net, items), place)


def _row(net: Network, node: Node, rows: Value, place: Value) -> Value:
    """A row, counted from either end; a place outside ends the run with an error."""
    index = layers.cast(net, layers.reshape(net, place, []), "int64")
    zero, size = net.constant(np.array(0, np.int64)), layers.length_of(net, rows, 0)
    is_negative = layers.binary(net, "less", index, zero)
    index = layers.select(net, is_negative, layers.binary(net, "sum", index, size), index)
    below, above = (layers.binary(net, "less", *pair) for pair in ((index, size), (net.constant(np.array(-1)), index)))
    inside = layers.binary(net, "and", below, above)
    net.append_at(RequireOp(net.ssa(inside), f"{node.label}: the sequence of {rows.dims[0]} items has no such item"))
    return net.emit("gather", [rows, index], axis=0)


def _position(node: Node, k: int, default: int, count: int) -> int:
    """Input `k` as one of `count` places, counted from the front."""
    given = node.known_integers(k, "the place in the sequence")
    place = default if given is None else given[0]
    if not -count <= place < count:
        raise node.invalid(f"the place {place} does not exist; there are {count}")
    return place % count


@onnx_op("SplitToSequence", since=11)
def split(net: Network, node: Node) -> Value:
    x = node.input(0)
    axis = node.axis("axis", 0, x.rank)
    sizes = _sizes(net, node, axis)
    parts: list[Value] = []
    start: Dim = 0
    for size in sizes:
        parts.append(layers.along(net, x, axis, start, size))
        start = start + size
    if node.optional(1) is None and not node.flag("keepdims", True):
        parts = [layers.squeeze(net, part, [axis]) for part in parts]
    return SequenceValue(parts, x.element)


def _sizes(net: Network, node: Node, axis: int) -> list[Dim]:
    """The lengths of the parts; one number stands for equal parts, of which the last may be shorter."""
    whole = node.input(0).dims[axis]
    known = [1] if node.optional(1) is None else node.known_dims(1) or [None]
    if not isinstance(whole, int) or any(isinstance(size, Expr) for size in known):
        return _sizes_of_a_run(net, node, axis, known)
    given = node.known_integers(1, "the lengths of the parts")
    value = node.optional(1)
    if given is not None and value is not None and value.rank:
        require_parts(net, node, axis, given)
        return list(given)
    part = 1 if given is None else given[0]
    if part < 1 or -(-whole // part) > MAX_SEQUENCE:
        raise node.invalid(f"the length {whole} cannot be split into parts of {part}")
    return [min(part, whole - start) for start in range(0, whole, part)]


def _sizes_of_a_run(net: Network, node: Node, axis: int, known: Sequence[Dim | None]) -> list[Dim]:
    """Lengths that depend on those of the inputs; how many there are must not."""
    whole, value = node.input(0).dims[axis], node.optional(1)
    sizes = [size for size in known if size is not None]
    if len(sizes) != len(known):
        raise node.needed(1, "the lengths of the parts")
    if value is not None and value.rank:
        require_parts(net, node, axis, sizes)
        return sizes
    # Where the parts are known to be the whole, their number may be one although its length is not.
    whole_parts = floor_div(whole, sizes[0]) if sizes[0] != 0 else 0
    count = whole_parts if whole_parts * sizes[0] == whole else ceil_div(whole, sizes[0])
    if not isinstance(count, int) or not 1 <= count <= MAX_SEQUENCE:
        raise node.unsupported(f"the length {whole} makes a number of parts of {sizes[0]} that only a run tells")
    return [*[sizes[0]] * (count - 1), whole - (count - 1) * sizes[0]]


@onnx_op("ConcatFromSequence", since=11)
def concat(net: Network, node: Node) -> Value:
    first, is_new = node.input(0), bool(node.integer("new_axis", 0))
    if isinstance(first, RowSequence):
        return _joined(net, node, first.rows, is_new)
    items = list(sequence_input(node).items)
    if not items:
        raise node.invalid("its sequence is empty")
    axis = node.from_front(node.integer("axis"), items[0].rank + is_new)
    if is_new:
        items = [layers.unsqueeze(net, item, [axis]) for item in items]
    return layers.concatenate(net, items, axis)


def _joined(net: Network, node: Node, rows: Value, is_new: bool) -> Value:
    """The rows of a tensor, which lie along its first axis, along another one: a new one, or behind each other."""
    axis = node.from_front(node.integer("axis"), rows.rank - 1 + is_new)
    turned = layers.transpose(net, rows, [*range(1, axis + 1), 0, *range(axis + 1, rows.rank)])
    if is_new:
        return turned
    return layers.reshape(net, turned, merged_dims(turned, axis))


@onnx_op("SequenceMap", since=17)
def map_(net: Network, node: Node) -> Sequence[Value]:
    """The body once for each item; further sequences give it their item at that place, tensors themselves."""
    from mlirt.frontend.onnx.graph_reader import GraphReader

    body, first, given = node.graph("body"), sequence_input(node), node.present()
    count = len(first.items)
    lengths = [len(value.items) for value in given if isinstance(value, SequenceValue)]
    if len(body.input) != len(given) or set(lengths) != {count}:
        raise node.invalid(
            f"its body has {len(body.input)} inputs for {len(given)}, and the sequences have {lengths} items"
        )
    names = [value.name for value in body.input]
    columns: list[list[Value]] = []
    for k in range(count):
        values = [value.items[k] if isinstance(value, SequenceValue) else value for value in given]
        columns.append(GraphReader(net).read_branch(body, node, dict(zip(names, values, strict=True))))
    kinds = [element(value.type.tensor_type.elem_type, node.label) for value in body.output]
    return [SequenceValue([column[k] for column in columns], kind) for k, kind in enumerate(kinds)]
