"""Shape arithmetic in a plan: whole-number formulas over named symbols, stored as JSON and evaluated on the host.

A formula is an integer, the name of a symbol, or `[operator, left, right]` with one of `OPERATORS`. `parse` turns the
JSON form into nested tuples after checking every name, the depth and the size of the numbers; `evaluate` computes it.
"""

import operator as whole_numbers
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias, cast

Expression: TypeAlias = int | str | tuple[str, "Expression", "Expression"]

LIMIT = 2**62
MAX_DEPTH = 64


class ExpressionError(ValueError):
    """A formula is malformed, or has no value for the shapes at hand."""


def _checked_divisor(value: int) -> int:
    if value == 0:
        raise ExpressionError("division by zero")
    return value


OPERATORS: Mapping[str, Callable[[int, int], int]] = {
    "+": whole_numbers.add,
    "-": whole_numbers.sub,
    "*": whole_numbers.mul,
    "//": lambda a, b: a // _checked_divisor(b),
    "%": lambda a, b: a % _checked_divisor(b),
    "max": max,
    "min": min,
    # The length of two dimensions that are equal unless one of them is 1.
    "broadcast": lambda a, b: b if a == 1 else a,
}


def parse(value: object, symbols: Collection[str], depth: int = 0) -> Expression:
    """Return the formula that the JSON `value` spells; raise ExpressionError where it is not one over `symbols`."""
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > LIMIT:
            raise ExpressionError("a number is beyond 2^62")
        return value
    if isinstance(value, str):
        if value not in symbols:
            raise ExpressionError(f"unknown symbol {value[:40]!r}")
        return value
    if not isinstance(value, list | tuple):
        raise ExpressionError(f"a formula is a whole number, a symbol or [operator, a, b], not {type(value).__name__}")
    if depth >= MAX_DEPTH:
        raise ExpressionError(f"a formula is nested deeper than {MAX_DEPTH}")
    items = cast("list[object]", value)
    if len(items) != 3 or not isinstance(items[0], str) or items[0] not in OPERATORS:
        raise ExpressionError(f"a formula is [operator, a, b] with an operator of {', '.join(OPERATORS)}")
    return items[0], parse(items[1], symbols, depth + 1), parse(items[2], symbols, depth + 1)


def evaluate(expression: Expression, values: Mapping[str, int]) -> int:
    """The value of `expression` where each symbol has its value of `values`; raise ExpressionError on overflow."""
    if isinstance(expression, int):
        return expression
    if isinstance(expression, str):
        return values[expression]
    operator, left, right = expression
    result = OPERATORS[operator](evaluate(left, values), evaluate(right, values))
    if abs(result) > LIMIT:
        raise ExpressionError("a result is beyond 2^62")
    return result


def to_text(expression: Expression) -> str:
    """The formula as people write it, for messages: `(2*n)+1`."""
    if not isinstance(expression, tuple):
        return str(expression)
    operator, left, right = expression
    if operator in ("max", "min", "broadcast"):
        return f"{operator}({to_text(left)}, {to_text(right)})"
    sides = [f"({to_text(side)})" if isinstance(side, tuple) else to_text(side) for side in (left, right)]
    return operator.join(sides)
