"""Expressions of a Python function of numbers, as layers where a tensor is among the operands, else as numbers."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeAlias, cast

from mlirt.frontend.functions.numbers import (
    CALLS,
    Operand,
    UnreadableError,
    binary,
    is_number,
    negated,
    power,
    quotient,
    select,
    truth,
)
from mlirt.frontend.importing.network import Network, Value

Names: TypeAlias = "dict[str, Any]"

# Paths double with each condition, and calls nest: what takes more steps is not compiled.
MAX_STEP_COUNT = 2000


class Expressions:
    """What the expressions of one function give. `outer` are the names that it sees around itself."""

    def __init__(
        self,
        net: Network,
        outer: Mapping[str, Any],
        steps: list[None],
        call: Callable[[Any, Sequence[Any], Mapping[str, Any]], Any],
    ) -> None:
        """`steps` grows with each one; `call` reads another function of the user's."""
        self.net, self.outer, self.steps, self._read_call = net, outer, steps, call

    def step(self, node: ast.AST) -> None:
        self.steps.append(None)
        if len(self.steps) > MAX_STEP_COUNT:
            raise unreadable(node, f"it takes more than {MAX_STEP_COUNT} steps")

    def operand(self, node: ast.expr, names: Names) -> Operand:
        found = self.value(node, names)
        if not isinstance(found, Value) and not is_number(found):
            raise unreadable(node, f"it gives a {type(found).__name__}, expected a number")
        return found

    def value(self, node: ast.expr, names: Names) -> Any:
        self.step(node)
        reader = _READERS.get(type(node))
        if reader is None:
            raise unreadable(node)
        return reader(self, cast("Any", node), names)

    def read_constant(self, node: ast.Constant, names: Names) -> Any:
        return node.value

    def read_tuple(self, node: ast.Tuple, names: Names) -> Any:
        return tuple(self.value(one, names) for one in node.elts)

    def read_variable(self, node: ast.Name, names: Names) -> Any:
        if node.id in names:
            return names[node.id]
        if node.id not in self.outer:
            raise unreadable(node, f"{node.id} is not known")
        return self.outer[node.id]

    def read_attribute(self, node: ast.Attribute, names: Names) -> Any:
        owner = self.value(node.value, names)
        if not isinstance(owner, ModuleType) or not hasattr(owner, node.attr):
            raise unreadable(node)
        return getattr(owner, node.attr)

    def read_binary(self, node: ast.BinOp, names: Names) -> Any:
        left, right = self.operand(node.left, names), self.operand(node.right, names)
        if not isinstance(left, Value) and not isinstance(right, Value):
            return _computed(node, left, right)
        if isinstance(node.op, ast.Div):
            return quotient(self.net, left, right)
        if isinstance(node.op, ast.Pow):
            return power(self.net, left, right)
        if type(node.op) not in _KINDS:
            raise unreadable(node)
        return binary(self.net, _KINDS[type(node.op)], left, right)

    def read_unary(self, node: ast.UnaryOp, names: Names) -> Any:
        x = self.operand(node.operand, names)
        if isinstance(node.op, ast.Not):
            return negated(self.net, truth(self.net, x)) if isinstance(x, Value) else not x
        if isinstance(node.op, ast.UAdd):
            return x
        if isinstance(node.op, ast.USub):
            return binary(self.net, "sub", 0, x) if isinstance(x, Value) and _is_whole(x) else self._minus(x)
        raise unreadable(node)

    def _minus(self, x: Operand) -> Operand:
        return self.net.emit("unary", [x], kind="neg") if isinstance(x, Value) else -x

    def read_comparison(self, node: ast.Compare, names: Names) -> Any:
        operands = [self.operand(one, names) for one in (node.left, *node.comparators)]
        found: Any = True
        for kind, left, right in zip(node.ops, operands, operands[1:], strict=False):
            one = self._compared(kind, left, right, node)
            found = one if found is True else self._both(found, one)
        return found

    def _compared(self, kind: ast.cmpop, left: Operand, right: Operand, node: ast.Compare) -> Any:
        if type(kind) not in _COMPARISONS:
            raise unreadable(node)
        if not isinstance(left, Value) and not isinstance(right, Value):
            return bool(
                _computed(ast.copy_location(ast.Compare(ast.Constant(left), [kind], [ast.Constant(right)]), node))
            )
        name = _COMPARISONS[type(kind)]
        if name == "not_equal":
            return negated(self.net, binary(self.net, "equal", left, right))
        return binary(self.net, name, left, right)

    def _both(self, left: Any, right: Any) -> Any:
        if isinstance(left, Value) or isinstance(right, Value):
            return binary(self.net, "and", truth(self.net, left), truth(self.net, right))
        return left and right

    def read_logic(self, node: ast.BoolOp, names: Names) -> Any:
        operands = [self.operand(one, names) for one in node.values]
        if not any(isinstance(one, Value) for one in operands):
            return all(operands) if isinstance(node.op, ast.And) else any(operands)
        kind = "and" if isinstance(node.op, ast.And) else "or"
        found = truth(self.net, operands[0])
        for one in operands[1:]:
            found = binary(self.net, kind, found, truth(self.net, one))
        return found

    def read_choice(self, node: ast.IfExp, names: Names) -> Any:
        condition = self.operand(node.test, names)
        if not isinstance(condition, Value):
            return self.value(node.body if condition else node.orelse, names)
        yes, no = self.operand(node.body, names), self.operand(node.orelse, names)
        return select(self.net, truth(self.net, condition), yes, no)

    def read_call(self, node: ast.Call, names: Names) -> Any:
        function = self.value(node.func, names)
        args = [self.value(one, names) for one in node.args]
        keywords = {str(one.arg): self.value(one.value, names) for one in node.keywords}
        if not any(isinstance(one, Value) for one in (*args, *keywords.values())):
            if function is range or function in CALLS:
                return function(*args, **keywords)
        elif function in CALLS and not keywords:
            return CALLS[function](self.net, args)
        if inspect.isfunction(function) or hasattr(function, "py_func"):
            return self._read_call(function, args, keywords)
        raise unreadable(node, f"{ast.unparse(node.func)} has no layer")


def unreadable(node: ast.AST, why: str = "") -> UnreadableError:
    """Why a part of the function is not read, with its line."""
    text = " ".join(ast.unparse(node).split())[:60]
    return UnreadableError(f"line {getattr(node, 'lineno', 0)} of it, {text!r}: {why or 'there is no layer for it'}")


def _computed(node: ast.expr, left: Any = None, right: Any = None) -> Any:
    """An operation of two numbers, done now."""
    if isinstance(node, ast.BinOp):
        node = ast.copy_location(ast.BinOp(ast.Constant(left), node.op, ast.Constant(right)), node)
    code = compile(ast.fix_missing_locations(ast.Expression(node)), "<numbers>", "eval")
    try:
        return eval(code, {"__builtins__": {}})  # two constants and an operator of the user's own function
    except ArithmeticError as error:
        raise UnreadableError(f"{ast.unparse(node)}: {error}") from error


def _is_whole(x: Value) -> bool:
    return "float" not in x.element_name


_KINDS: dict[type[ast.operator], str] = {
    ast.Add: "sum",
    ast.Sub: "sub",
    ast.Mult: "prod",
    ast.FloorDiv: "floor_div",
    ast.Mod: "mod",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}
_READERS: dict[type[ast.expr], Callable[[Expressions, Any, Names], Any]] = {
    ast.Constant: Expressions.read_constant,
    ast.Tuple: Expressions.read_tuple,
    ast.Name: Expressions.read_variable,
    ast.Attribute: Expressions.read_attribute,
    ast.BinOp: Expressions.read_binary,
    ast.UnaryOp: Expressions.read_unary,
    ast.Compare: Expressions.read_comparison,
    ast.BoolOp: Expressions.read_logic,
    ast.IfExp: Expressions.read_choice,
    ast.Call: Expressions.read_call,
}
