"""What TensorRT's parser refuses of ONNX, or reads without effect, though the importer computes it.

`OnnxParser` asks here first (tensorrt-features.md#10.14, 11.17, 28.8); `mlirt.compile` does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

from mlirt.errors import Refusal, UnsupportedOperatorsError
from mlirt.frontend.importing.refused_nodes import RefusedNodes
from mlirt.frontend.onnx.node_order import node_label
from mlirt.tensorrt.limits import way_out
from mlirt.tensorrt.reported_version import reports_at_least

REFUSED_OPERATORS = ("QLinearConv", "QLinearMatMul")
"""Quantized operators; TensorRT takes quantization as QuantizeLinear and DequantizeLinear around float operators."""

_WIDTHS: Mapping[int, str] = {
    TensorProto.INT16: "INT16", TensorProto.UINT16: "UINT16", TensorProto.INT4: "INT4", TensorProto.UINT4: "UINT4",
    TensorProto.INT2: "INT2", TensorProto.UINT2: "UINT2",
}  # fmt: skip


def check_limits(model: ModelProto) -> None:
    """Raise `UnsupportedOperatorsError`, which names each node and tensor, for what TensorRT's parser refuses."""
    found = RefusedNodes()
    for index, node in _nodes(model):
        if node.op_type in REFUSED_OPERATORS and node.domain in ("", "ai.onnx"):
            why = "TensorRT has no layer for it, but for QuantizeLinear, DequantizeLinear and the operator between"
            found.add(node.op_type, "ai.onnx", node_label(node, index), why, way_out())
        for kind in {attribute.i for attribute in node.attribute if _is_type(node, attribute)}:
            _refuse_type(found, kind, node.op_type, node_label(node, index))
    for name, kind in _typed_tensors(model):
        _refuse_type(found, kind, "tensor", name)
    rows: tuple[Refusal, ...] = found.table()
    if rows:
        raise UnsupportedOperatorsError(rows)


def without_seeds(model: ModelProto) -> list[str]:
    """Take the attribute `seed` from all nodes, as TensorRT ignores it; gives a warning for each kind of node."""
    seeded: dict[str, None] = {}
    for _, node in _nodes(model):
        kept = [one for one in node.attribute if one.name != "seed"]
        if len(kept) < len(node.attribute):
            seeded[node.op_type] = None
            del node.attribute[:]
            node.attribute.extend(kept)
    return [
        f'TensorRT currently ignores the "seed" field in {op_type} op. Random seeds will be used.' for op_type in seeded
    ]


def has_double_weights(model: ModelProto) -> bool:
    """Whether a weight of the model is of type DOUBLE."""
    return any(tensor.data_type == TensorProto.DOUBLE for tensor in _weights(model))


def _refuse_type(found: RefusedNodes, kind: int, operator: str, name: str) -> None:
    if kind in _WIDTHS and not ("4" in _WIDTHS[kind] and reports_at_least(10)):
        why = f"TensorRT has no type {_WIDTHS[kind]}: expected FLOAT, HALF, INT8, INT32, INT64, DOUBLE, BOOL or UINT8"
        found.add(operator, "ai.onnx", name, why, way_out())


def _is_type(node: NodeProto, attribute: AttributeProto) -> bool:
    """Whether an attribute is the type that a node converts to."""
    return attribute.name in ("to", "dtype", "output_dtype") and attribute.type == AttributeProto.INT


def _typed_tensors(model: ModelProto) -> Iterator[tuple[str, int]]:
    for graph in _graphs(model):
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.HasField("tensor_type"):
                yield value.name, _element(value.type)
    for tensor in _weights(model):
        yield tensor.name or "a constant", tensor.data_type


def _element(type_: TypeProto) -> int:
    return type_.tensor_type.elem_type


def _weights(model: ModelProto) -> Iterator[TensorProto]:
    """All initializers, and the tensors of nodes."""
    for graph in _graphs(model):
        yield from graph.initializer
    for _, node in _nodes(model):
        yield from (one.t for one in node.attribute if one.type == AttributeProto.TENSOR)


def _nodes(model: ModelProto) -> Iterator[tuple[int, NodeProto]]:
    """All nodes with their place: those of the graph, of branches and loops, and of functions."""
    for graph in _graphs(model):
        yield from enumerate(graph.node)
    for function in model.functions:
        yield from enumerate(function.node)


def _graphs(model: ModelProto) -> Iterator[GraphProto]:
    yield from _with_inner([model.graph])
    for function in model.functions:
        yield from _with_inner(_inner(function.node))


def _with_inner(graphs: Iterable[GraphProto]) -> Iterator[GraphProto]:
    for graph in graphs:
        yield graph
        yield from _with_inner(_inner(graph.node))


def _inner(nodes: Iterable[NodeProto]) -> list[GraphProto]:
    attributes = [one for node in nodes for one in node.attribute]
    return [graph for one in attributes for graph in ([one.g] if one.HasField("g") else list(one.graphs))]
