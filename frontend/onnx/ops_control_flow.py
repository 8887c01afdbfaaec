"""Graphs inside of nodes: If takes one of two, Loop and Scan run one again and again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto

from mlirt.errors import UnsupportedError
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.branches import assume, branch
from mlirt.frontend.onnx.growing_states import growing_states, grown, with_parts
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.loops import Body, ChangingShapeError, Iteration, LoopMaker
from mlirt.frontend.onnx.node import Node, scalar
from mlirt.frontend.onnx.sequences import flattened, form, formed, is_tensor_value
from mlirt.frontend.onnx.written_out_loops import written_out


@onnx_op("If")
def if_(net: Network, node: Node) -> Sequence[Value]:
    """A branch; where the condition is known when the engine is built, the nodes of one side."""
    from mlirt.frontend.onnx.graph_reader import GraphReader

    reader, condition = GraphReader(net), node.input(0)
    graphs = [node.graph("then_branch"), node.graph("else_branch")]
    array = condition.array
    if array is not None:
        if array.size != 1:
            raise node.invalid(f"expected a condition of one element, got the shape {array.shape}")
        return reader.read_branch(graphs[0] if scalar(array) else graphs[1], node)
    if node.name in net.assumed:
        side = net.assumed[node.name]
        assume(net, node, condition, side)
        return reader.read_branch(graphs[0] if side else graphs[1], node)
    forms: list[list[Value]] = []

    def arm(graph: GraphProto) -> list[Value]:
        forms.append(reader.read_branch(graph, node))
        if form(forms[-1]) != form(forms[0]):
            raise net.needed(condition, f"{node.label}: the condition, as its branches give sequences that differ,")
        return flattened(forms[-1])

    results = branch(net, node, condition, [lambda graph=graph: arm(graph) for graph in graphs])
    return formed(results, forms[0])


@onnx_op("Loop")
def loop(net: Network, node: Node) -> Sequence[Value]:
    """At most `M` iterations, as long as the condition holds; outputs that are no states are the rows of all
    iterations.
    """
    body = node.graph("body")
    states = [node.input(k) for k in range(2, len(node.inputs))]
    rows = len(body.output) - 1 - len(states)
    if len(body.input) != len(states) + 2 or rows < 0:
        raise node.invalid(
            f"its body has {len(body.input)} inputs and {len(body.output)} outputs for {len(states)} states"
        )

    limit, start, growing = node.optional(0), node.optional(1), growing_states(body, states)
    places = {one.place for one in growing}
    sequences = {k for k, state in enumerate(states) if not is_tensor_value(state)}
    if sequences and (_are_known(limit, start) or not sequences <= places):
        why = "the loop carries a sequence or an optional"
        return written_out(net, node, limit, start, states, _iteration(net, node, body, len(states)), why)
    kept = [state for k, state in enumerate(states) if k not in places]
    iteration = _iteration(net, node, with_parts(body, growing), len(kept))
    try:
        finals, collected = LoopMaker(net, node, limit, start, kept, iteration).make()
    except ChangingShapeError as error:
        if limit is None:
            raise node.unsupported(f"{error}, and it has no trip count (input 0)") from error
        return written_out(net, node, limit, start, states, _iteration(net, node, body, len(states)), str(error))
    except UnsupportedError as error:
        open_ends = [value for value in (limit, start) if value is not None and value.array is None]
        if not sequences or not open_ends:
            raise
        what = f"{node.label}: the trip count, as the items of a sequence differ,"
        raise net.needed(open_ends[0], what) from error
    rest = iter(finals)
    parts = {one.place: (one, part) for one, part in zip(growing, collected[rows:], strict=True)}
    after = [
        grown(net, parts[k][0], state, parts[k][1]) if k in parts else next(rest) for k, state in enumerate(states)
    ]
    return [*after, *collected[:rows]]


def _are_known(limit: Value | None, start: Value | None) -> bool:
    """Whether the trip count may be known now."""
    return limit is not None and limit.array is not None and (start is None or start.array is not None)


def _iteration(net: Network, node: Node, body: GraphProto, count: int) -> Body:
    """Reads the body for one iteration, with so many states."""
    from mlirt.frontend.onnx.graph_reader import GraphReader

    def iteration(counter: Value, carried: list[Value]) -> Iteration:
        number = _as_declared(net, counter, body, 0)
        holds = _as_declared(net, net.constant(np.array(True)), body, 1)
        given = dict(zip([value.name for value in body.input], [number, holds, *carried], strict=True))
        more, *results = GraphReader(net).read_branch(body, node, given)
        return Iteration(more, results[:count], results[count:])

    return iteration


def _as_declared(net: Network, value: Value, body: GraphProto, k: int) -> Value:
    """A number with the rank that the body declares for it: models have both 0-D tensors and lists of one."""
    declared = body.input[k].type.tensor_type
    wants_list = declared.HasField("shape") and len(declared.shape.dim) == 1
    return layers.reshape(net, value, [1]) if wants_list else value


@onnx_op("Scan", since=9)
def scan(net: Network, node: Node) -> Sequence[Value]:
    """One iteration for each position along the scanned axes."""
    return _scan(net, node, node.present())


def _scan(net: Network, node: Node, inputs: Sequence[Value]) -> list[Value]:
    from mlirt.frontend.onnx.graph_reader import GraphReader

    body, count = node.graph("body"), node.integer("num_scan_inputs")
    states, scanned = list(inputs[: len(inputs) - count]), list(inputs[len(inputs) - count :])
    if not scanned or len(body.input) != len(inputs):
        raise node.invalid(f"its body has {len(body.input)} inputs for {len(inputs)} inputs, {count} of them scanned")
    rows = len(body.output) - len(states)
    axes = [value.rank and axis % value.rank for value, axis in zip(scanned, _list(node, "axes", count), strict=True)]
    backward = _list(node, "directions", count)
    lengths = [value.dims[axis] for value, axis in zip(scanned, axes, strict=True)]
    known = {length for length in lengths if isinstance(length, int)}
    if len(known) > 1:
        raise node.invalid(f"it scans lengths that differ: {[str(length) for length in lengths]}")
    limit = layers.length_of(net, scanned[0], axes[0])

    def iteration(counter: Value, carried: list[Value]) -> Iteration:
        last = layers.binary(net, "sub", limit, net.constant(np.array(1, np.int64)))
        parts = [
            net.emit(
                "gather",
                [value, layers.binary(net, "sub", last, counter) if back else counter],
                axis=axis,
            )
            for value, axis, back in zip(scanned, axes, backward, strict=True)
        ]
        given = dict(zip([value.name for value in body.input], [*carried, *parts], strict=True))
        results = GraphReader(net).read_branch(body, node, given)
        return Iteration(None, results[: len(states)], results[len(states) :])

    finals, collected = LoopMaker(net, node, limit, None, states, iteration).make()
    return [*finals, *_turned(net, node, collected, rows)]


def _turned(net: Network, node: Node, collected: Sequence[Value], rows: int) -> list[Value]:
    """What was collected with the iterations at the axis and in the direction that the attributes say."""
    axes, backward = _list(node, "output_axes", rows), _list(node, "output_directions", rows)
    results: list[Value] = []
    for value, axis, back in zip(collected, axes, backward, strict=True):
        turned = layers.reversed_along(net, value, 0) if back else value
        order = list(range(1, value.rank))
        order.insert(axis % value.rank, 0)
        results.append(layers.transpose(net, turned, order))
    return results


def _list(node: Node, name: str, count: int) -> list[int]:
    """A list attribute `scan_input_axes`, .. with one number for each scanned input or output; zeros if absent."""
    full = f"scan_{name}" if name.startswith("output") else f"scan_input_{name}"
    found = node.integers(full, [0] * count)
    if len(found) != count:
        raise node.invalid(f"expected {count} numbers in {full}, got {found}")
    return found


@onnx_op("Scan", since=8)
def scan_of_batches(net: Network, node: Node) -> Sequence[Value]:
    """Before opset 9 every tensor has the batch first, and each of its entries is scanned alone."""
    if node.optional(0) is not None:
        raise node.unsupported("its sequences have lengths of their own (input 0)")
    inputs = [node.input(k) for k in range(1, len(node.inputs))]
    batch = inputs[0].dims[0]
    if not isinstance(batch, int):
        raise node.unsupported(f"its batch {batch} is known only at run time")
    entries = [
        _scan(net, node, [layers.squeeze(net, layers.along(net, value, 0, k, 1), [0]) for value in inputs])
        for k in range(batch)
    ]
    return [
        layers.concatenate(net, [layers.unsqueeze(net, value, [0]) for value in column], 0)
        for column in zip(*entries, strict=True)
    ]
