"""The names of all nodes of a model, those in subgraphs included, as messages and locations call them."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import AttributeProto, GraphProto

from mlirt.frontend.onnx.model_reader import ModelSource, read_model
from mlirt.frontend.onnx.node_order import node_label


def node_names(model: ModelSource) -> list[tuple[str, str]]:
    """The label and the operator of each node, in the file's order; raises `InvalidModelError` if it is damaged."""
    return list(_nodes(read_model(model).proto.graph))


def _nodes(graph: GraphProto) -> Iterator[tuple[str, str]]:
    for index, node in enumerate(graph.node):
        yield node_label(node, index), node.op_type
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.type == AttributeProto.GRAPH else attribute.graphs:
                yield from _nodes(inner)
