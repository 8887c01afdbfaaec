"""Walks the nodes of a graph and hands each to its handler, to shape arithmetic, or to the body of its function."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnx import AttributeProto, GraphProto, NodeProto, TensorProto
from xdsl.ir import SSAValue

from mlirt.dialects.locations import named
from mlirt.dialects.pass_plugins import place_in_plugin
from mlirt.dialects.tensor_names import hint_of_name
from mlirt.dialects.tensor_types import element_type, numpy_dtype, tensor
from mlirt.errors import InvalidInputError, InvalidModelError, MlirtError, out_of_memory
from mlirt.frontend.importing.narrow_type import INFINITELY_SCALED
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.number_arrays import ABSENT, Numbers, constant_of
from mlirt.frontend.importing.refused_nodes import DAMAGE
from mlirt.frontend.onnx.function_bodies import FunctionTable, body_of
from mlirt.frontend.onnx.function_lengths import require_lengths_of_function
from mlirt.frontend.onnx.handlers import Handler, handler_for
from mlirt.frontend.onnx.narrow_types import NARROW_TYPES
from mlirt.frontend.onnx.narrow_values import check_narrow_inputs, with_narrow_types
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.node_order import node_label, ordered_nodes
from mlirt.frontend.onnx.plugin_nodes import creator_of, not_found, plugin_results
from mlirt.frontend.onnx.refusals import not_supported
from mlirt.frontend.onnx.sequences import check_sequence_inputs
from mlirt.frontend.onnx.shape_values import has_rule, propagate
from mlirt.frontend.onnx.stored_bytes import Stored
from mlirt.frontend.onnx.tensor_reader import element, read_tensor, shape_of

MAX_FUNCTION_DEPTH = 32

# Functions that call functions several times multiply; no network has as many layers.
MAX_NODE_COUNT = 250_000


@dataclass
class Scope:
    """The tensors that a graph sees, the operator sets that it imports, and the functions that it may call."""

    opsets: Mapping[str, int]
    functions: FunctionTable
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    outer: Scope | None = None
    folder: Path | None = None
    depth: int = 0
    layer: str = ""
    stored: Stored = field(default_factory=dict[int, memoryview])
    """What large initializers of this graph hold, which have none of it themselves."""

    def find(self, name: str) -> Value | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        return None

    def visible(self) -> set[str]:
        return set(self.values) | (self.outer.visible() if self.outer else set())


class GraphReader:
    """Reads graphs into one network."""

    def __init__(self, net: Network) -> None:
        self.net = net

    def read_graph(self, graph: GraphProto, scope: Scope, more: Sequence[str] = ()) -> list[Value]:
        """The outputs of a graph whose inputs are already in `scope`, and `more` of its tensors."""
        self._initializers(graph, scope)
        own = [value.name for value in graph.output]
        self.read_nodes(graph.node, scope, [*own, *more])
        return [*(self._output(scope, name) for name in own), *(_inner(scope, name, graph) for name in more)]

    def read_nodes(self, nodes: Sequence[NodeProto], scope: Scope, wanted: Sequence[str]) -> None:
        for index, proto in ordered_nodes(nodes, scope.visible(), wanted):
            self._read_node(proto, scope.layer or node_label(proto, index), scope)

    def read_branch(self, graph: GraphProto, node: Node, given: Mapping[str, Value] | None = None) -> list[Value]:
        """The outputs of a subgraph that sees the tensors around its node; `given` has the values of its inputs."""
        outer = node.scope
        values = dict(given or {})
        inner = Scope(outer.opsets, outer.functions, values, outer, outer.folder, outer.depth + 1, outer.layer)
        return self.read_graph(graph, inner)

    def _initializers(self, graph: GraphProto, scope: Scope) -> None:
        if graph.sparse_initializer:
            raise not_supported(
                "sparse_initializer", graph.sparse_initializer[0].values.name, scope.opsets.get("", 0), ""
            )
        known: dict[str, tuple[TensorProto, memoryview | None]] = {}
        for number, stored in enumerate(graph.initializer):
            raw = scope.stored.get(number)
            if known.setdefault(stored.name, (stored, raw)) != (stored, raw):  # readers disagree about which one counts
                raise InvalidModelError(f"there are two initializers {stored.name!r}, which differ")
            what = f"initializer {stored.name!r}"
            type_ = tensor(element(stored.data_type, what), shape_of(stored, what))
            scope.values.setdefault(
                stored.name,
                Value(
                    type_,
                    load=lambda t=stored, w=what, r=raw: read_tensor(t, w, scope.folder, r),
                    hint=stored.name,
                    narrow=NARROW_TYPES.get(stored.data_type),
                ),
            )

    def _output(self, scope: Scope, name: str) -> Value:
        value = scope.find(name)
        if value is None:
            raise InvalidModelError(f"the graph output {name!r} is not defined by any node, input or initializer")
        if value.narrow is INFINITELY_SCALED:
            raise InvalidModelError(
                f"the graph output {name!r} has integers whose scale is infinite: expected scales greater than 0, or a "
                "DequantizeLinear behind it"
            )
        return value

    def _read_node(self, proto: NodeProto, name: str, scope: Scope) -> None:
        self.net.nodes_read += 1
        if self.net.nodes_read > MAX_NODE_COUNT:
            raise InvalidModelError(f"{proto.op_type} (node {name!r}): the model has more than {MAX_NODE_COUNT} nodes")
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        node = Node(
            self.net,
            proto.op_type,
            name,
            scope.opsets.get(domain, 1 if domain else scope.opsets[""]),
            domain,
            [self._operand(scope, text, proto, name) for text in proto.input],
            list(proto.output),
            _attributes(proto, name),
            scope,
            scope.folder,
        )
        with self.net.at(named(name)):
            results = self._results(node, proto)
        self._define(node, results)

    def _operand(self, scope: Scope, text: str, proto: NodeProto, name: str) -> Value | None:
        value = scope.find(text) if text else None
        if text and value is None:
            raise InvalidModelError(
                f"{proto.op_type} (node {name!r}) reads the tensor {text!r}, which is not defined before it"
            )
        return value

    def _results(self, node: Node, proto: NodeProto) -> Sequence[Value]:
        try:
            handler = handler_for(node.domain, node.op_type, node.opset)
            if handler is None:
                creator = creator_of(node)
                return self._expanded(node, proto) if creator is None else plugin_results(self.net, node, creator)
            check_sequence_inputs(node)
            check_narrow_inputs(node)
            results = self._arithmetic(node, handler) or _listed(handler(self.net, node))
            return with_narrow_types(node, results)
        except MlirtError:
            raise
        except MemoryError as error:
            raise out_of_memory(node.label, error) or error from error
        except (*DAMAGE, RecursionError) as error:
            raise InvalidModelError(f"{node.label}: {_first_line(error)}{place_in_plugin(error)}") from error

    def _arithmetic(self, node: Node, handler: Handler) -> list[Value] | None:
        """Results whose elements follow from shapes; the ops behind them are made only where somebody reads them."""
        if (
            node.domain
            or not has_rule(node.op_type)
            or not node.inputs
            or node.inputs[0] is None
            or all(v is None or v.is_constant for v in node.inputs)
        ):
            return None
        inputs = [ABSENT if value is None else value.dim_values for value in node.inputs]
        if all(numbers is None for numbers in inputs):
            return None
        results = propagate(node.op_type, inputs, node.plain_attributes(), node.inputs[0].element)
        if results is None:
            return None
        made: list[Value] = []

        def make(k: int) -> SSAValue:
            made.extend([] if made else _listed(handler(self.net, node)))
            return self.net.ssa(made[k])

        return [self._number_value(node, numbers, lambda k=k: make(k)) for k, numbers in enumerate(results)]

    def _number_value(self, node: Node, numbers: Numbers, make: Callable[[], SSAValue]) -> Value:
        kind = element_type(_result_element(node))
        constant = constant_of(numbers, numpy_dtype(kind))
        if constant is not None:
            return self.net.constant(constant)
        return self.net.deferred(tensor(kind, numbers.shape), make, numbers)

    def _expanded(self, node: Node, proto: NodeProto) -> list[Value]:
        """A node without a handler, read as the nodes of its function's body."""
        body = body_of(node, proto)
        if body is None:
            raise node.unsupported(not_found(node))
        if node.scope.depth >= MAX_FUNCTION_DEPTH:
            raise node.invalid("its function calls itself, or the calls are nested too deeply")
        require_lengths_of_function(self.net, node)
        scope = Scope(body.opsets, node.scope.functions, {}, None, node.folder, node.scope.depth + 1, node.name)
        given = dict(zip(body.inputs, node.inputs, strict=False))
        scope.values.update({name: value for name, value in given.items() if value is not None})
        nodes = body.nodes_without(set(body.inputs) - set(scope.values))
        wanted = [name for k, name in enumerate(body.outputs) if node.wants(k)]
        self.read_nodes(nodes, scope, wanted)
        return [
            scope.values[name] if node.wants(k) else next(iter(scope.values.values()))
            for k, name in enumerate(body.outputs)
        ]

    def _define(self, node: Node, results: Sequence[Value]) -> None:
        for k, name in enumerate(node.outputs):
            if not name:
                continue
            if k >= len(results):
                raise node.unsupported(
                    f"its output {k} ({name!r}) cannot be computed; only the first {len(results)} can"
                )
            result = results[k]
            if not result.hint:
                result.hint = name
                if result.ssa is not None and result.ssa.name_hint is None:
                    result.ssa.name_hint = hint_of_name(name)
            node.scope.values[name] = result


def _inner(scope: Scope, name: str, graph: GraphProto) -> Value:
    """A tensor that the caller asks for, which need not be there."""
    value = scope.find(name)
    if value is None:
        known = {*scope.values, *(output for node in graph.node for output in node.output if output)}
        near = difflib.get_close_matches(name, sorted(known), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidInputError(f"the model has no tensor {name!r} outside of loops and branches{hint}")
    return value


def _attributes(proto: NodeProto, name: str) -> dict[str, AttributeProto]:
    for attribute in proto.attribute:
        if attribute.ref_attr_name:
            raise InvalidModelError(
                f"{proto.op_type} (node {name!r}): attribute {attribute.name!r} refers to a function, but it is in none"
            )
    return {attribute.name: attribute for attribute in proto.attribute}


def _listed(results: Value | Sequence[Value]) -> Sequence[Value]:
    return [results] if isinstance(results, Value) else results


def _result_element(node: Node) -> str:
    """The element type of shape arithmetic's results."""
    first = node.input(0).element_name
    if node.op_type in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Not", "And", "Or"):
        return "bool"
    if node.op_type in ("Size", "Shape"):
        return "int64"
    if node.op_type == "Cast":
        from mlirt.frontend.onnx.tensor_reader import element_name

        return element_name(node.integer("to"), node.label)
    if node.op_type == "ConstantOfShape":
        return node.tensor("value").dtype.name if node.has("value") else "float32"
    return node.input(1).element_name if node.op_type == "Where" else first


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines)[:400] or type(error).__name__
