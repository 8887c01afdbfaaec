"""Part of a graph as a network: what stands between operators that are left to PyTorch."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.context import RtContext
from mlirt.dialects.registry import register_dialects
from mlirt.errors import UnsupportedError, UnsupportedOperatorsError
from mlirt.frontend.importing.main_function import end_network, main_module
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.elements import array_of
from mlirt.frontend.torch.graph_reader import GraphReader
from mlirt.frontend.torch.importer import argument, type_of
from mlirt.frontend.torch.symbols import Symbols


@dataclass(frozen=True)
class Subgraph:
    """A network, and for each placeholder its input (`None` for weights and sizes); for each result its output."""

    module: ModuleOp
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]


def import_subgraph(graph: Any, weights: Mapping[str, Any], ctx: RtContext) -> Subgraph:
    """The network of a graph whose results are tensors; `weights` are tensors by the names of their placeholders."""
    register_dialects(ctx)
    net = Network(ctx.weights)
    reader, inputs, outputs = read_graph(graph, weights, net)
    if reader.refused:
        raise UnsupportedOperatorsError(reader.refused.table())
    named = [(f"output_{k}", value) for k, value in enumerate(outputs)]
    end_network(net, [value for _, value in named])
    return Subgraph(main_module(net, named), tuple(inputs), tuple(name for name, _ in named))


def read_graph(
    graph: Any, weights: Mapping[str, Any], net: Network
) -> tuple[GraphReader, list[str | None], list[Value]]:
    """Read the nodes into a network; the reader knows what it has refused."""
    reader = GraphReader(net, Symbols())
    inputs: list[str | None] = []
    nodes = list(graph.nodes)
    for node in nodes:
        if node.op == "placeholder":
            inputs.append(_placeholder(node, weights, net, reader))
        elif node.op == "get_attr":
            # What is no tensor is the graph of a branch or a loop.
            weight = weights.get(node.target)
            reader.values[node] = None if weight is None else net.constant(array_of(weight), node.target)
    reader.read(nodes)
    results = nodes[-1].args[0]
    listed = list(results) if isinstance(results, tuple | list) else [results]
    outputs = [reader.values.get(one) for one in listed if isinstance(one, torch.fx.Node)]
    tensors = [value for value in outputs if isinstance(value, Value)]
    if not reader.refused and len(tensors) != len(listed):
        raise UnsupportedError("a result of this part of the graph is no tensor")
    return reader, inputs, tensors


def _placeholder(node: Any, weights: Mapping[str, Any], net: Network, reader: GraphReader) -> str | None:
    found = node.meta.get("val")
    if node.name in weights:
        reader.values[node] = net.constant(array_of(weights[node.name]), node.name)
        return None
    if not isinstance(found, torch.Tensor):
        reader.values[node] = reader.number(node, found)
        return None
    name = str(node.name)
    reader.values[node] = argument(net, name, type_of(found, reader.symbols))
    return name
