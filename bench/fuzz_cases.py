"""The cases of the CPU fuzz: random graphs with each operator in turn, and ONNX's node tests with dynamic lengths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import fuzz_layers
import fuzz_moves
import numpy as np
import onnx
from fuzz_graphs import Array, DoesNotFit, Graph
from fuzz_operators import OPERATORS
from onnx import TensorProto, helper, numpy_helper

_LENGTHS = (1, 2, 3, 5, 7, 8, 16, 17, 33)
_CHANNELS = (1, 2, 3, 4, 5, 8, 12, 17)
_TRIES = 40
_WRITERS = (fuzz_moves, fuzz_layers)  # importing them puts their operators into the table


@dataclass(frozen=True)
class Case:
    """A model and the inputs of some runs; all lengths agree unless `contradicts`.

    `expected` are the outputs that the case itself says each run has; empty where it says nothing.
    """

    name: str
    model: onnx.ModelProto
    runs: tuple[dict[str, Array], ...]
    expected: tuple[dict[str, Array], ...] = ()


def random_case(number: int, nodes: int, *, contradicts: bool = False) -> Case:
    """A graph of about so many nodes, which holds operator `number` of the table where it fits.

    With `contradicts` each dynamic dimension of each input is a symbol of its own, so that a run may give any of them
    any length, whatever the graph needs. Nodes whose outputs have no uses are left out, as a compiler asks nothing of
    them.
    """
    kinds = list(OPERATORS)
    random = np.random.default_rng([number, nodes])
    graph = Graph(random, _CHANNELS, ("n", "m"))
    _add_inputs(graph)
    wanted = [kinds[number % len(kinds)], *(str(graph.one_of(kinds)) for _ in range(_TRIES))]
    for kind in wanted:
        if len(graph.nodes) >= nodes:
            break
        before = len(graph.nodes), len(graph.values), len(graph.weights), set(graph.used)
        try:
            OPERATORS[kind](graph, kind)
        except DoesNotFit:
            del graph.nodes[before[0] :], graph.values[before[1] :], graph.weights[before[2] :]
            graph.used = before[3]
    model = graph.model()
    lengths = [{symbol: int(graph.one_of(_LENGTHS)) for symbol in graph.symbols} for _ in range(2)]
    runs = [graph.feeds(one) for one in lengths]
    if contradicts:
        make_dynamic(model)
        remove_dead_nodes(model)
        runs = [changed_lengths(graph.feeds(one), model, random) for one in lengths]
    return Case(f"graph {number} ({wanted[0]})", model, tuple(runs))


def _add_inputs(graph: Graph) -> None:
    channels, rows, columns = (int(graph.one_of(_CHANNELS)) for _ in range(3))
    image = [int(graph.one_of((4, 6, 7, 9, 16))) for _ in range(2)]
    batch = graph.length()
    graph.add_input("f32", (batch, channels, *image))
    graph.add_input("f32", (graph.length(), rows, columns))
    graph.add_input("f32", (batch, graph.length(), columns))
    graph.add_input("f32", (batch, columns))
    graph.add_input("i64", (batch, columns))
    graph.add_input("i32", (graph.length(), rows))
    graph.add_input("u8", (batch, columns))
    graph.add_input("bool", (batch, columns))


def make_dynamic(model: onnx.ModelProto) -> None:
    """Give each dimension of each input a symbol of its own."""
    initialized = {weight.name for weight in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in initialized and value.type.HasField("tensor_type"):
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                dim.dim_param = f"{value.name}_{axis}"
    del model.graph.value_info[:]
    for value in model.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")


def remove_dead_nodes(model: onnx.ModelProto) -> None:
    """Remove the nodes that no output of the graph depends on."""
    needed = {value.name for value in model.graph.output}
    kept: list[onnx.NodeProto] = []
    for node in reversed(model.graph.node):
        if needed & set(node.output):
            needed |= _names_read(node)
            kept.append(node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(kept))


def _names_read(node: onnx.NodeProto) -> set[str]:
    """The inputs of a node, and whatever the nodes of its bodies read."""
    inner = (one for attribute in node.attribute for one in attribute.g.node)
    return set(node.input).union(*map(_names_read, inner))


def changed_lengths(
    feeds: dict[str, Array], model: onnx.ModelProto, random: np.random.Generator, share: float = 0.3
) -> dict[str, Array]:
    """The inputs with some of their lengths changed: shorter, longer, or 1."""
    dynamic = {v.name for v in model.graph.input if any(dim.dim_param for dim in v.type.tensor_type.shape.dim)}
    changed = dict(feeds)
    for name in sorted(dynamic & set(feeds)):
        array = changed[name]
        for axis in range(array.ndim):
            if random.random() < share:
                length = max(0, int(random.choice([1, array.shape[axis] - 1, array.shape[axis] + 1, 2, 5])))
                array = np.resize(array, (*array.shape[:axis], length, *array.shape[axis + 1 :]))
        changed[name] = np.ascontiguousarray(array)
    return changed


def node_cases(*, contradicts: bool = False) -> Iterator[Case]:
    """ONNX's node tests whose inputs and outputs are tensors, with all lengths of their inputs dynamic.

    What goes in and comes out passes an addition of an input that is 0, so that the operator meets tensors that other
    kernels write and read.
    """
    from onnx.backend.test.case.node import collect_testcases

    for number, test in enumerate(collect_testcases(None)):
        given: Any = test
        model, data = onnx.ModelProto(), given.data_sets
        model.CopyFrom(given.model)
        if not data or not all(isinstance(value, np.ndarray | np.generic) for part in data[0] for value in part):
            continue
        names = [value.name for value in model.graph.input]
        feeds = {name: np.asarray(value) for name, value in zip(names, data[0][0], strict=False)}
        if len(feeds) != len(names) or any(value.dtype.kind in "OUSV" for value in feeds.values()):
            continue
        make_dynamic(model)
        _surround(model, feeds)
        if contradicts:
            random = np.random.default_rng(number)
            yield Case(f"node {given.name}", model, tuple(changed_lengths(feeds, model, random) for _ in range(3)))
            continue
        outputs = [value.name for value in model.graph.output]
        expected = {name: np.asarray(value) for name, value in zip(outputs, data[0][1], strict=True)}
        yield Case(f"node {given.name}", model, (feeds,), (expected,))


def _surround(model: onnx.ModelProto, feeds: dict[str, Array]) -> None:
    """Add an input of zeros to each float32 input and output."""
    graph, zero = model.graph, "zero_input"
    renamed = {
        value.name: f"{value.name}_given"
        for value in graph.input
        if value.type.tensor_type.elem_type == TensorProto.FLOAT
    }
    added = {
        value.name: f"{value.name}_plain"
        for value in graph.output
        if value.type.tensor_type.elem_type == TensorProto.FLOAT and value.name not in renamed
    }
    if not renamed and not added:
        return
    for node in graph.node:
        node.output[:] = [added.get(name, name) for name in node.output]
        node.input[:] = [added.get(name, name) for name in node.input]
    before = [helper.make_node("Add", [outer, zero], [name], f"before_{name}") for name, outer in renamed.items()]
    after = [helper.make_node("Add", [inner, zero], [name], f"after_{name}") for name, inner in added.items()]
    nodes = [*before, *graph.node, *after]
    del graph.node[:]
    graph.node.extend(nodes)
    for value in graph.input:
        if value.name in renamed:
            feeds[renamed[value.name]] = feeds.pop(value.name)
            value.name = renamed[value.name]
    graph.input.append(helper.make_tensor_value_info(zero, TensorProto.FLOAT, ()))
    feeds[zero] = numpy_helper.to_array(helper.make_tensor(zero, TensorProto.FLOAT, (), [0.0]))
