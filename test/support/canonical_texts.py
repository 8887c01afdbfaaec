"""What a canonical text of a kernel has none of: casts and arithmetic that do nothing, and numbers computed twice."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import cast

_TYPES = frozenset("int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 bool_".split())
_INDEX_WORDS = frozenset({"div", "rem", "thread_id", "warp_value", *(f"block_id_{axis}" for axis in range(3))})
_PURE = _TYPES | frozenset("div rem truncated_div truncated_rem floor_div ceil_div minimum maximum select".split())


def mistakes(text: str) -> list[str]:
    """What of these a text has, each with the line that it stands in."""
    functions = [one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)]
    return [found for function in functions for found in _Audit(function).mistakes()]


class _Audit:
    def __init__(self, function: ast.FunctionDef) -> None:
        self.function = function
        self.narrow = any(_called(one) == "int32" for one in ast.walk(function) if isinstance(one, ast.Call))
        self.assigned: dict[str, list[str | None]] = defaultdict(list)
        for argument in function.args.args:
            named = argument.annotation
            self.assigned[argument.arg].append(str(named.value) if isinstance(named, ast.Constant) else None)
        for one in ast.walk(function):
            for target, value in _assignments(one):
                self.assigned[target].append(self.type_of(value))

    def mistakes(self) -> Iterator[str]:
        for one in ast.walk(self.function):
            why = self._nothing_done(one)
            if why is not None:
                yield f"{why}: {ast.unparse(one).splitlines()[0]}"
            for block in (getattr(one, "body", None), getattr(one, "orelse", None)):
                if isinstance(block, list):
                    yield from self._computed_twice(cast("list[ast.stmt]", block))

    def _nothing_done(self, one: ast.AST) -> str | None:
        if isinstance(one, ast.Compare) and _is_number(one.left) and all(map(_is_number, one.comparators)):
            return "a comparison of numbers"
        if isinstance(one, ast.For) and _iterations(one.iter) in (0, 1):
            return "a loop of at most one iteration"
        if isinstance(one, ast.If) and _is_number(one.test):
            return "a decided branch"
        if isinstance(one, ast.BinOp):
            if isinstance(one.op, ast.BitAnd | ast.BitOr) and any(map(_is_condition, (one.left, one.right))):
                return "a conjunction with a known condition"
            if _is_number(one.left) and _is_number(one.right):
                return "arithmetic of numbers"
            if isinstance(one.op, ast.Add | ast.Sub) and _is_integer(one.right, 0):
                return "an addition of zero"
            if isinstance(one.op, ast.Mult) and (_is_integer(one.right, 0, 1) or _is_integer(one.left, 0, 1)):
                return "a product with zero or one"
        if isinstance(one, ast.Call) and _called(one) in _TYPES and len(one.args) == 1:
            (inner,) = one.args
            if self.type_of(inner) == _called(one):
                return "a cast to the own type"
            if isinstance(inner, ast.Call) and _called(inner) in _TYPES and _is_number(inner):
                return "a cast of a cast"
        return None

    def _computed_twice(self, block: list[ast.stmt]) -> Iterator[str]:
        seen: set[str] = set()
        for statement in block:
            for target, value in _assignments(statement):
                text = ast.unparse(value)
                if self._is_pure(value) and not isinstance(value, ast.Name | ast.Constant) and text in seen:
                    yield f"computed twice: {target} = {text}"
                if len(self.assigned[target]) == 1:
                    seen.add(text)

    def _is_pure(self, value: ast.AST) -> bool:
        """Whether a value follows from numbers and from names that are assigned once."""
        for one in ast.walk(value):
            if isinstance(one, ast.Call) and _called(one) not in _PURE:
                return False
            if isinstance(one, ast.Subscript):
                return False
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and len(self.assigned.get(one.id, ())) > 1:
                return False
        return True

    def type_of(self, value: ast.AST) -> str | None:
        """The type of a value where the text says it."""
        if isinstance(value, ast.Call):
            called = _called(value)
            return "int32" if self.narrow and called in _INDEX_WORDS else called if called in _TYPES else None
        if isinstance(value, ast.Name):
            types = self.assigned.get(value.id, [])
            return types[0] if len(types) == 1 else None
        return None


def _assignments(statement: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if not isinstance(statement, ast.Assign):
        return
    (target,) = statement.targets
    if isinstance(target, ast.Name):
        yield target.id, statement.value
    elif isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
        for one, value in zip(target.elts, statement.value.elts, strict=True):
            if isinstance(one, ast.Name):
                yield one.id, value


def _called(one: ast.AST) -> str:
    return one.func.id if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) else ""


def _iterations(loop: ast.expr) -> int | None:
    """How often a range of numbers runs."""
    if not isinstance(loop, ast.Call) or _called(loop) != "range" or not all(map(_is_number, loop.args)):
        return None
    return len(range(*[int(ast.literal_eval(_without_casts(one))) for one in loop.args]))


def _without_casts(one: ast.expr) -> ast.expr:
    return _without_casts(one.args[0]) if isinstance(one, ast.Call) else one


def _is_condition(one: ast.AST) -> bool:
    return isinstance(one, ast.Constant) and isinstance(one.value, bool)


def _is_number(one: ast.AST) -> bool:
    if isinstance(one, ast.Call):
        return _called(one) in _TYPES and len(one.args) == 1 and _is_number(one.args[0])
    return isinstance(one, ast.Constant) and not isinstance(one.value, str)


def _is_integer(one: ast.AST, *numbers: int) -> bool:
    return isinstance(one, ast.Constant) and type(one.value) is int and one.value in numbers


__all__ = ["mistakes"]
