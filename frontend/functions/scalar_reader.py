"""Reads a Python function of numbers and makes the layers that do the same to each element of tensors.

Each path through the function is followed: behind an `if` whose condition depends on the tensors both sides are
computed, with all that comes after them, and the condition chooses between the results.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from mlirt.frontend.functions.numbers import Operand, UnreadableError, is_number, select, truth
from mlirt.frontend.functions.scalar_expressions import Expressions, Names, unreadable
from mlirt.frontend.importing.network import Network, Value

Results: TypeAlias = "Operand | tuple[Operand, ...]"

MAX_TRIP_COUNT = 64
MAX_CALL_DEPTH = 16


def read_scalar_function(
    net: Network, function: Callable[..., Any], inputs: Sequence[Operand], attributes: Mapping[str, Operand]
) -> list[Operand]:
    """The results of a function for these operands, as layers; raises `UnreadableError` where it is not read."""
    found = _Reading(net).call(function, inputs, attributes)
    return list(found) if isinstance(found, tuple) else [found]


class _Reading:
    def __init__(self, net: Network) -> None:
        self.net = net
        self.steps: list[None] = []
        self.depth = 0

    def call(self, function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> Results:
        """What a function of the user's returns."""
        written: Any = getattr(function, "py_func", function)
        definition = _definition(written)
        if self.depth == MAX_CALL_DEPTH:
            raise UnreadableError(f"{written.__name__}: more than {MAX_CALL_DEPTH} functions call each other")
        try:
            bound = inspect.signature(written).bind(*args, **keywords)
        except TypeError as error:
            raise UnreadableError(str(error)) from error
        bound.apply_defaults()
        self.depth += 1
        found = _Frame(self, written).run(definition.body, dict(bound.arguments))
        self.depth -= 1
        if found is None:
            raise UnreadableError(f"{written.__name__} may end without a result")
        return found


class _Frame(Expressions):
    """One function: its names are variables, else those that it sees around itself."""

    def __init__(self, reading: _Reading, function: Any) -> None:
        around = inspect.getclosurevars(function)
        outer = {**vars(builtins), **around.globals, **around.nonlocals}
        super().__init__(reading.net, outer, reading.steps, reading.call)

    def run(self, statements: Sequence[ast.stmt], names: Names) -> Results | None:
        """The result of the statements; None where they end without one."""
        for number, statement in enumerate(statements):
            self.step(statement)
            rest = statements[number + 1 :]
            if isinstance(statement, ast.Return):
                return self._returned(statement, names)
            if isinstance(statement, ast.If):
                return self._either(statement, rest, names)
            if isinstance(statement, ast.For):
                return self.run([*self._unrolled(statement, names), *rest], names)
            self._assign(statement, names)
        return None

    def _returned(self, statement: ast.Return, names: Names) -> Results:
        if statement.value is None:
            raise unreadable(statement, "it returns nothing")
        if isinstance(statement.value, ast.Tuple):
            return tuple(self.operand(one, names) for one in statement.value.elts)
        return self.operand(statement.value, names)

    def _either(self, statement: ast.If, rest: Sequence[ast.stmt], names: Names) -> Results | None:
        condition = self.value(statement.test, names)
        if not isinstance(condition, Value):
            return self.run([*(statement.body if condition else statement.orelse), *rest], names)
        yes = self.run([*statement.body, *rest], dict(names))
        no = self.run([*statement.orelse, *rest], dict(names))
        if yes is None or no is None:
            raise unreadable(statement, "one of its sides ends without a result")
        pairs = zip(_tuple(yes), _tuple(no), strict=False)
        chosen = tuple(select(self.net, truth(self.net, condition), a, b) for a, b in pairs)
        return chosen if isinstance(yes, tuple) else chosen[0]

    def _unrolled(self, statement: ast.For, names: Names) -> list[ast.stmt]:
        """The body of a loop over numbers that are known, once for each."""
        items = self.value(statement.iter, names)
        if isinstance(items, Value) or statement.orelse or not isinstance(statement.target, ast.Name):
            raise unreadable(statement, "a loop goes over numbers that are known, such as range(4)")
        listed = list(items)
        if len(listed) > MAX_TRIP_COUNT or not all(map(is_number, listed)):
            raise unreadable(statement, f"a loop goes over at most {MAX_TRIP_COUNT} numbers")
        found: list[ast.stmt] = []
        for item in listed:
            assign = ast.Assign([statement.target], ast.Constant(item))
            found += [ast.copy_location(ast.fix_missing_locations(ast.copy_location(assign, statement)), statement)]
            found += statement.body
        return found

    def _assign(self, statement: ast.stmt, names: Names) -> None:
        if isinstance(statement, ast.Pass) or (
            isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        ):
            return
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], self.value(statement.value, names)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target, value = statement.target, self.value(statement.value, names)
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            name = ast.copy_location(ast.Name(statement.target.id, ast.Load()), statement)
            value = self.read_binary(
                ast.copy_location(ast.BinOp(name, statement.op, statement.value), statement), names
            )
            target = statement.target
        else:
            raise unreadable(statement)
        if isinstance(target, ast.Tuple) and isinstance(value, tuple):
            for one, part in zip(target.elts, cast("tuple[Any, ...]", value), strict=True):
                names[self._name(one)] = part
        else:
            names[self._name(target)] = value

    def _name(self, target: ast.expr) -> str:
        if not isinstance(target, ast.Name):
            raise unreadable(target)
        return target.id


def _definition(function: Any) -> ast.FunctionDef:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError) as error:
        raise UnreadableError("there is no source of it; put it in a file, as a def") from error
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise UnreadableError("it is no def of its own")
    return definition


def _tuple(results: Results) -> tuple[Operand, ...]:
    return results if isinstance(results, tuple) else (results,)
