"""States of a loop that only grow: each iteration adds a part at an end, and nothing in the loop reads what is there.

Such a state is no state: it is the rows of all iterations, joined behind the loop. So its length may depend on the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnx import GraphProto, NodeProto

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.node_order import tensors_read
from mlirt.frontend.onnx.sequences import RowSequence, SequenceValue, merged_dims, stacked

_FIRST_STATE, _FIRST_RESULT = 2, 1


@dataclass(frozen=True)
class Growing:
    """State `place` gets the tensor `part` in each iteration: along `axis`, at its end or start, or as another item."""

    place: int
    part: str
    axis: int | None
    at_start: bool = False


def growing_states(body: GraphProto, states: Sequence[Value]) -> list[Growing]:
    """The states that only grow, in order."""
    makers = {name: node for node in body.node for name in node.output}
    reads = [name for node in body.node for name in tensors_read(node)]
    reads += [value.name for value in body.output]
    found: list[Growing] = []
    for place, state in enumerate(states):
        name = body.input[_FIRST_STATE + place].name
        node = makers.get(body.output[_FIRST_RESULT + place].name)
        if node is None or reads.count(name) != 1:
            continue
        found.extend(_growing(place, name, node, isinstance(state, SequenceValue)))
    return found


def _growing(place: int, name: str, node: NodeProto, is_sequence: bool) -> Iterator[Growing]:
    given = [text for text in node.input if text]
    if len(given) != 2 or name not in given:
        return
    if is_sequence and node.op_type == "SequenceInsert" and given[0] == name:
        yield Growing(place, given[1], None)
    elif not is_sequence and node.op_type == "Concat":
        axes = [attribute.i for attribute in node.attribute if attribute.name == "axis"]
        yield Growing(place, given[1 - given.index(name)], axes[0] if axes else 1, given[1] == name)


def with_parts(body: GraphProto, growing: Sequence[Growing]) -> GraphProto:
    """The body without these states, whose parts it collects last."""
    copy = GraphProto()
    copy.CopyFrom(body)
    joined = {body.output[_FIRST_RESULT + one.place].name for one in growing}
    for k in reversed([k for k, node in enumerate(copy.node) if joined & set(node.output)]):
        del copy.node[k]
    for one in sorted(growing, key=lambda one: one.place, reverse=True):
        del copy.input[_FIRST_STATE + one.place]
        del copy.output[_FIRST_RESULT + one.place]
    for one in growing:
        copy.output.add().name = one.part
    return copy


def grown(net: Network, one: Growing, start: Value, rows: Value) -> Value:
    """What a state is after the loop; `rows` are its parts with the iterations as their first dimension."""
    if one.axis is None:
        assert isinstance(start, SequenceValue)
        known = [stacked(net, start.items)] if start.items else []
        return RowSequence(layers.concatenate(net, [*known, rows], 0) if known else rows)
    axis = one.axis % start.rank
    if one.at_start:
        rows = layers.reversed_along(net, rows, 0)
    order = [*range(1, axis + 1), 0, *range(axis + 1, rows.rank)]
    turned = layers.transpose(net, rows, order)
    joined = layers.reshape(net, turned, merged_dims(turned, axis))
    return layers.concatenate(net, [joined, start] if one.at_start else [start, joined], axis)
