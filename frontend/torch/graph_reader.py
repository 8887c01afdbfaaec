"""Walks the nodes of an exported graph and hands each to the handler of its operator."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from xdsl.utils.test_value import create_ssa_value

from mlirt.dialects.locations import named
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_names import hint_of_name
from mlirt.dialects.tensor_types import element_type, tensor
from mlirt.errors import InvalidModelError, MlirtError, UnsupportedError
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.refused_nodes import DAMAGE, RefusedNodes
from mlirt.frontend.torch.boolean_calls import is_on_booleans, on_integers
from mlirt.frontend.torch.call import Call, ResultType
from mlirt.frontend.torch.custom_operators import custom_handler
from mlirt.frontend.torch.elements import element_of_dtype
from mlirt.frontend.torch.handlers import handler_for, without_copy
from mlirt.frontend.torch.symbolic_numbers import number_value
from mlirt.frontend.torch.symbols import Symbols

# They check what PyTorch has assumed of sizes and types when it exported; nobody reads a result of theirs.
_CHECKS = frozenset(
    f"aten.{name}"
    for name in (
        "_assert_scalar.default",
        "_assert_async.msg",
        "_assert_async.default",
        "_assert_tensor_metadata.default",
        "sym_constrain_range.default",
        "sym_constrain_range_for_size.default",
    )
)

# PyTorch 2.11 infers the states of an LSTM as [layers, 1, batch, hidden], and computes [layers, batch, hidden].
_EXTRA_DIMENSION = frozenset({"aten.lstm.input"})


class GraphReader:
    """Reads one graph into a network. What is refused is gathered in `refused`, and stands as unknown tensors."""

    def __init__(self, net: Network, symbols: Symbols) -> None:
        self.net = net
        self.symbols = symbols
        self.values: dict[Any, Any] = {}
        self.refused = RefusedNodes()
        self.refused_nodes: set[Any] = set()
        self._unknown: set[Any] = set()

    def read(self, nodes: Sequence[Any]) -> None:
        """The calls among the nodes of a graph; those without a value are in `values` already."""
        for node in nodes:
            if node.op == "call_function":
                self._read(node)

    def _read(self, node: Any) -> None:
        operator = operator_of(node)
        if operator in _CHECKS:
            return
        found = node.meta.get("val")
        if isinstance(found, int | float | bool):
            self.values[node] = found
        elif isinstance(found, torch.SymInt):
            self._size(node, found)
        elif isinstance(found, torch.SymBool | torch.SymFloat):
            self.values[node] = self.number(node, found)
        elif operator.endswith("getitem") and not isinstance(node.target, torch._ops.OpOverload):
            self._item(node, self.values[node.args[0]], node.args[1])
        else:
            self._call(node, operator)

    def number(self, node: Any, found: Any) -> Any:
        """What is no tensor: a length as a dimension, what follows from lengths as a value, others as they are."""
        if isinstance(found, torch.SymInt):
            return self.symbols.dim(found)
        if not isinstance(found, torch.SymFloat) or any(str(one).startswith("zu") for one in _symbols_of(found)):
            return found
        try:
            return number_value(self.net, self.symbols, found.node.expr)
        except UnsupportedError as error:
            self._refuse(node, _reason(error), _way_out(error))
            return None

    def _size(self, node: Any, size: Any) -> None:
        if self.symbols.is_unknown(size):
            self._refuse(node, "a size that is read from data", "keep it out of shapes, or fix it when exporting")
            self.values[node] = 1
        else:
            self.values[node] = self.symbols.dim(size)

    def _item(self, node: Any, results: Any, number: int) -> None:
        """One of several results; handlers leave out what is for training."""
        if number < len(results):
            self.values[node] = results[number]
            self._unknown |= {node} if node.args[0] in self._unknown else set()
        else:
            self._stand_in(node, f"result {number} of {name_of(node.args[0])} is not computed", "do without it")

    def _call(self, node: Any, operator: str) -> None:
        name = name_of(node)
        try:
            results = self._results(node, operator, name)
        except UnsupportedError as error:
            self._stand_in(node, _reason(error), _way_out(error))
        except (InvalidModelError, *DAMAGE) as error:
            self._stand_in(node, _reason(error), "report it: PyTorch takes the program")
        else:
            several = isinstance(node.meta["val"], tuple | list)
            self.values[node] = results if several else results[0]

    def _results(self, node: Any, operator: str, name: str) -> list[Value]:
        operator = without_copy(operator)
        if operator.startswith("aten.as_strided") and not node.args[0].meta["val"].is_contiguous():
            raise UnsupportedError("it reads a tensor by strides that does not lie in the order of rows")
        handler = handler_for(operator) or custom_handler(operator)
        if handler is None:
            raise UnsupportedError("there is no layer for it")
        call = Call(
            self.net,
            operator,
            name,
            self._arguments(node),
            _types(node.meta["val"], self.symbols),
            lambda names: element_of_dtype(torch.result_type(*(_meta_of(node, one) for one in names))),
            _unread(node),
        )
        with self.net.at(named(name)):
            found = on_integers(self.net, call, handler) if is_on_booleans(call) else handler(self.net, call)
        results = [found] if isinstance(found, Value) else list(found)
        for k, (value, wanted) in enumerate(zip(results, _listed(node.meta["val"]), strict=False)):
            is_extra = operator in _EXTRA_DIMENSION and k and wanted.dim() == value.rank + 1 and wanted.shape[1] == 1
            self._check(value, wanted.squeeze(1) if is_extra else wanted, name, k)
            if value.ssa is not None and value.ssa.name_hint is None:
                value.ssa.name_hint = hint_of_name(node.name)
        return results

    def _check(self, value: Value, wanted: Any, name: str, number: int) -> None:
        """A result has the type that PyTorch inferred; sizes that only data tells get their names from the layer."""
        element = element_of_dtype(wanted.dtype)
        if value.element_name != element or value.rank != wanted.dim():
            raise InvalidModelError(f"result {number} is {value.type}, expected {element}{list(wanted.shape)}")
        for size, dim in zip(wanted.shape, value.dims, strict=True):
            if self.symbols.is_unknown(size):
                self.symbols.bind(size, dim)
            elif isinstance(size, int) and isinstance(dim, int) and size != dim:
                raise InvalidModelError(f"result {number} is {value.type}, expected {element}{list(wanted.shape)}")

    def _arguments(self, node: Any) -> dict[str, Any]:
        schema = node.target._schema.arguments
        given: dict[str, Any] = {}
        for k, argument in enumerate(schema):
            if k < len(node.args):
                raw = node.args[k]
            else:
                raw = node.kwargs.get(argument.name, argument.default_value)
            given[argument.name] = self._argument(raw)
        return given

    def _argument(self, raw: Any) -> Any:
        if isinstance(raw, torch.fx.Node):
            return self.values[raw]
        if isinstance(raw, list | tuple):
            return [self._argument(one) for one in raw]
        return element_of_dtype(raw) if isinstance(raw, torch.dtype) else raw

    def _stand_in(self, node: Any, why: str, way_out: str) -> None:
        """Refuse a node, unless what it reads has been refused, and go on with tensors of the types it would give."""
        self._refuse(node, why, way_out)
        several = isinstance(node.meta.get("val"), tuple | list)
        stand_ins = [self._unknown_tensor(one) for one in _listed(node.meta.get("val"))]
        self.values[node] = stand_ins if several else stand_ins[0]

    def _unknown_tensor(self, like: Any) -> Value | None:
        if not isinstance(like, torch.Tensor):
            return None
        try:
            type_ = tensor(element_type(element_of_dtype(like.dtype)), _dims(like.shape, self.symbols))
        except MlirtError:
            type_ = tensor(element_type("float32"), [1] * like.dim())
        return Value(type_, create_ssa_value(type_))

    def _refuse(self, node: Any, why: str, way_out: str) -> None:
        self.refused_nodes.add(node)
        if not any(source in self._unknown for source in node.all_input_nodes):
            domain, _, operator = operator_of(node).partition(".")
            self.refused.add(operator, domain, name_of(node), why, way_out)
        self._unknown.add(node)


def operator_of(node: Any) -> str:
    """`aten.add.Tensor`, or the name of a Python function."""
    target = node.target
    return str(target) if isinstance(target, torch._ops.OpOverload) else f"python.{getattr(target, '__name__', target)}"


def name_of(node: Any) -> str:
    """The path of the module whose call this is, and the node's name."""
    stack = node.meta.get("nn_module_stack") or {}
    path = str(list(stack.values())[-1][0]) if stack else ""
    path = path.replace("L['self'].", "").replace("L['self']", "").replace("L__self___", "").strip("._")
    return f"{path}.{node.name}" if path else str(node.name)


def _types(found: Any, symbols: Symbols) -> list[ResultType]:
    return [
        ResultType(element_of_dtype(one.dtype), _dims(one.shape, symbols))
        for one in _listed(found)
        if isinstance(one, torch.Tensor)
    ]


def _dims(shape: Any, symbols: Symbols) -> tuple[Dim, ...]:
    return tuple(symbols.dim(size) for size in shape)


def _listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple | list) else [found]


def _meta_of(node: Any, name: str) -> Any:
    """An argument as PyTorch's promotion of types reads it: a tensor without elements, or a number."""
    for k, argument in enumerate(node.target._schema.arguments):
        if argument.name == name:
            raw = node.args[k] if k < len(node.args) else node.kwargs[name]
            found = raw.meta["val"] if isinstance(raw, torch.fx.Node) else raw
            return 1 if isinstance(found, torch.SymInt) else found
    raise KeyError(name)


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text.partition("is not supported yet; ")[2] or text[:300]


def _symbols_of(number: Any) -> Any:
    return number.node.expr.free_symbols


def _way_out(error: UnsupportedError) -> str:
    if "is not supported yet; " in str(error):
        return ""
    return "let torch.compile leave it to PyTorch, or write it with other operators"


def _unread(node: Any) -> frozenset[int]:
    """The numbers of the results that nothing reads, of a call that has several."""
    if not isinstance(node.meta["val"], tuple | list):
        return frozenset()
    picks = [user for user in node.users if operator_of(user).endswith("getitem")]
    if len(picks) < len(node.users):
        return frozenset()
    return frozenset(range(len(node.meta["val"]))) - {user.args[1] for user in picks if user.users}
