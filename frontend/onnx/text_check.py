"""Finds text in a model that is no UTF-8: protobuf hands it out as bytes, which no name can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto


def texts(model: ModelProto) -> Iterator[object]:
    """Every name in a model that the importer reads."""
    yield from (entry.domain for entry in model.opset_import)
    yield from _in_graph(model.graph)
    for function in model.functions:
        yield from (function.domain, function.name, function.overload)
        yield from (*function.input, *function.output, *(entry.domain for entry in function.opset_import))
        yield from _in_attributes(function.attribute_proto)
        yield from _in_nodes(function.node)


def _in_graph(graph: GraphProto) -> Iterator[object]:
    yield graph.name
    yield from _in_values([*graph.input, *graph.output])
    for tensor in graph.initializer:
        yield tensor.name
        yield from (text for entry in tensor.external_data for text in (entry.key, entry.value))
    yield from _in_nodes(graph.node)


def _in_values(values: Sequence[ValueInfoProto]) -> Iterator[object]:
    for value in values:
        yield value.name
        yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)


def _in_nodes(nodes: Sequence[NodeProto]) -> Iterator[object]:
    for node in nodes:
        yield from (node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
        yield from _in_attributes(node.attribute)


def _in_attributes(attributes: Sequence[AttributeProto]) -> Iterator[object]:
    for attribute in attributes:
        yield from (attribute.name, attribute.ref_attr_name)
        for tensor in [attribute.t, *attribute.tensors]:
            yield from (text for entry in tensor.external_data for text in (entry.key, entry.value))
        for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            yield from _in_graph(graph)
