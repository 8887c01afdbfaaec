"""Functions: ops that are defined by other ops, in the model itself or in ONNX's own definitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import onnx
from onnx import AttributeProto, FunctionProto, NodeProto, TensorProto, TypeProto

from mlirt.frontend.importing.network import Value

if TYPE_CHECKING:
    from mlirt.frontend.onnx.node import Node

FunctionTable: TypeAlias = "Mapping[tuple[str, str, str], FunctionProto]"


@dataclass(frozen=True)
class FunctionBody:
    """The nodes that stand for one call, with the call's attributes put in."""

    inputs: Sequence[str]
    outputs: Sequence[str]
    nodes: Sequence[NodeProto]
    opsets: Mapping[str, int]

    def nodes_without(self, absent: Collection[str]) -> list[NodeProto]:
        """The nodes where the optional inputs called `absent` are left out."""
        if not absent:
            return list(self.nodes)
        result: list[NodeProto] = []
        for node in self.nodes:
            copy = NodeProto()
            copy.CopyFrom(node)
            copy.input[:] = ["" if name in absent else name for name in node.input]
            result.append(copy)
        return result


def function_table(functions: Sequence[FunctionProto]) -> FunctionTable:
    """The functions of a model by domain, name and overload."""
    return {("" if f.domain == "ai.onnx" else f.domain, f.name, f.overload): f for f in functions}


def body_of(node: Node, proto: NodeProto) -> FunctionBody | None:
    """What a node stands for; `None` where no function defines it."""
    local = node.scope.functions.get((node.domain, node.op_type, proto.overload))
    if local is not None:
        return _bound(local, proto, {a.name: a for a in local.attribute_proto}, node.scope.opsets[""])
    return _schema_body(node, proto)


def _schema_body(node: Node, proto: NodeProto) -> FunctionBody | None:
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, node.opset, node.domain)
    except onnx.defs.SchemaError:
        return None
    function = FunctionProto()
    if schema.has_function:
        function.ParseFromString(
            schema.get_function_with_opset_version(_newest(schema.function_opset_versions, node.opset))
        )
    elif schema.has_context_dependent_function:
        version = _newest(schema.context_dependent_function_opset_versions, node.opset)
        types = [_type_proto(value) for value in node.inputs]
        function.ParseFromString(
            schema.get_context_dependent_function_with_opset_version(version, proto.SerializeToString(), types)
        )
    else:
        return None
    defaults = {name: a.default_value for name, a in schema.attributes.items() if a.default_value.name}
    return _bound(function, proto, defaults, node.scope.opsets[""])


def _newest(versions: Sequence[int], opset: int) -> int:
    fitting = [version for version in versions if version <= opset]
    return max(fitting) if fitting else min(versions)


def _bound(
    function: FunctionProto, proto: NodeProto, defaults: Mapping[str, AttributeProto], opset: int
) -> FunctionBody:
    given = {**defaults, **{attribute.name: attribute for attribute in proto.attribute}}
    opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in function.opset_import}
    opsets.setdefault("", opset)
    nodes = [_with_attributes(node, given) for node in function.node]
    return FunctionBody(list(function.input), list(function.output), nodes, opsets)


def _with_attributes(node: NodeProto, given: Mapping[str, AttributeProto]) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    for attribute in node.attribute:
        source = given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if source is None:
            continue  # the caller leaves it out, and so does the body
        bound = copy.attribute.add()
        bound.CopyFrom(source)
        bound.name = attribute.name
        for graph in [bound.g] if bound.type == AttributeProto.GRAPH else bound.graphs:
            inner = [_with_attributes(child, given) for child in graph.node]
            del graph.node[:]
            graph.node.extend(inner)
    return copy


def _type_proto(value: Value | None) -> bytes:
    if value is None:
        return TypeProto().SerializeToString()
    type_ = TypeProto()
    type_.tensor_type.elem_type = TensorProto.DataType.Value(_onnx_name(value.element_name))
    type_.tensor_type.shape.SetInParent()
    for dim in value.dims:
        entry = type_.tensor_type.shape.dim.add()
        if isinstance(dim, int):
            entry.dim_value = dim
        else:
            entry.dim_param = str(dim)
    return type_.SerializeToString()


def _onnx_name(element: str) -> str:
    return {"float32": "FLOAT", "float64": "DOUBLE"}.get(element, element.upper())
