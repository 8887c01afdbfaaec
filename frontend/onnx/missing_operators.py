"""All nodes of a model that nothing here can compute, found without reading the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto

from mlirt.errors import Refusal, UnsupportedError, UnsupportedOperatorsError
from mlirt.frontend.importing.refused_nodes import RefusedNodes
from mlirt.frontend.onnx.function_bodies import FunctionTable, function_table
from mlirt.frontend.onnx.handlers import handler_for
from mlirt.frontend.onnx.model_reader import opsets
from mlirt.frontend.onnx.node_order import node_label
from mlirt.frontend.onnx.plugin_nodes import registered_creator

_WHY = "there is no layer for it"
_WAY_OUT = "register a plugin (mlirt.op), or export it as other operators"


def with_all_missing(error: UnsupportedError, model: ModelProto) -> UnsupportedError:
    """The error for one node, or where more cannot be computed the error that lists them all."""
    if type(error) is not UnsupportedError:
        return error  # it says more than that a node is refused
    refusals = missing_operators(model)
    nodes = [node for refusal in refusals for node in refusal.nodes]
    is_listed = any(repr(node) in str(error) for node in nodes)
    if len(nodes) < (2 if is_listed else 1):
        return error
    other = () if is_listed else (Refusal(str(error).partition(" ")[0], "", str(error), "", ("",)),)
    return UnsupportedOperatorsError((*refusals, *other))


def missing_operators(model: ModelProto) -> tuple[Refusal, ...]:
    """A row for each operator without a handler, a function or a plugin; nodes inside of branches and functions too."""
    found = RefusedNodes()
    functions = function_table(model.functions)
    _walk(model.graph.node, opsets(model), functions, found)
    for function in model.functions:
        own = {("" if one.domain == "ai.onnx" else one.domain): one.version for one in function.opset_import}
        _walk(function.node, {**opsets(model), **own}, functions, found)
    return found.table()


def _walk(
    nodes: Iterable[NodeProto], versions: Mapping[str, int], functions: FunctionTable, found: RefusedNodes
) -> None:
    for index, node in enumerate(nodes):
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = versions.get(domain, 1 if domain else versions.get("", 1))
        if not _is_known(node, domain, opset, functions):
            found.add(node.op_type, domain or "ai.onnx", node_label(node, index), _WHY, _WAY_OUT)
        for graph in _graphs(node):
            _walk(graph.node, versions, functions, found)


def _is_known(node: NodeProto, domain: str, opset: int, functions: FunctionTable) -> bool:
    if handler_for(domain, node.op_type, opset) is not None or (domain, node.op_type, node.overload) in functions:
        return True
    texts = {one.name: one.s.decode(errors="replace") for one in node.attribute if one.type == AttributeProto.STRING}
    version, space = texts.get("plugin_version", "1"), texts.get("plugin_namespace")
    return registered_creator(node.op_type, version, space, domain) is not None or _has_body(node, domain, opset)


def _has_body(node: NodeProto, domain: str, opset: int) -> bool:
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, opset, domain)
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def _graphs(node: NodeProto) -> list[GraphProto]:
    return [graph for one in node.attribute for graph in ([one.g] if one.HasField("g") else list(one.graphs))]
