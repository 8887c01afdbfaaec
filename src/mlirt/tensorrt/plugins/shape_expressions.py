"""Shape arithmetic of plugins: formulas over the dimensions of their inputs (tensorrt-features.md#19.7).

A formula is a number, the name of a dimension, or `(operator, left, right)`, as runtime/expressions.py evaluates them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from mlirt.errors import InvalidInputError
from mlirt.tensorrt.enumeration import Enumeration

Formula: TypeAlias = "int | str | tuple[str, Formula, Formula]"

Length: TypeAlias = "int | IDimensionExpr"

_NOT_CONSTANT = -(1 << 31)


class DimensionOperation(Enumeration):
    """What two dimensions can be combined by. A comparison is 1 where it holds, and else 0."""

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    SUB = 4
    EQUAL = 5
    LESS = 6
    FLOOR_DIV = 7
    CEIL_DIV = 8


class IDimensionExpr:
    """A length that follows from those of the inputs; arithmetic with numbers and other lengths gives lengths."""

    def __init__(self, formula: Formula) -> None:
        self.formula = formula

    def __add__(self, other: Length) -> IDimensionExpr:
        return IDimensionExpr(_plus(self.formula, formula_of(other)))

    __radd__ = __add__

    def __sub__(self, other: Length) -> IDimensionExpr:
        return IDimensionExpr(_minus(self.formula, formula_of(other)))

    def __rsub__(self, other: int) -> IDimensionExpr:
        return IDimensionExpr(_minus(other, self.formula))

    def __mul__(self, other: Length) -> IDimensionExpr:
        return IDimensionExpr(_times(self.formula, formula_of(other)))

    __rmul__ = __mul__

    def __floordiv__(self, other: Length) -> IDimensionExpr:
        return IDimensionExpr(_floor(self.formula, formula_of(other)))

    def __rfloordiv__(self, other: int) -> IDimensionExpr:
        return IDimensionExpr(_floor(other, self.formula))

    def __mod__(self, other: Length) -> IDimensionExpr:
        return self - self // other * other

    def __lt__(self, other: Length) -> bool:
        raise self._unknown("compared")

    __gt__ = __le__ = __ge__ = __lt__

    def __index__(self) -> int:
        if isinstance(self.formula, int):
            return self.formula
        raise self._unknown("used as a number")

    def _unknown(self, what: str) -> InvalidInputError:
        return InvalidInputError(
            f"the length {self.formula} is not known when the network is built, so that it cannot be {what}; use + - * "
            "// and maximum, minimum, cdiv of mlirt.plugin"
        )

    def is_constant(self) -> bool:
        """Whether it is known when the engine is built."""
        return isinstance(self.formula, int)

    def get_constant_value(self) -> int:
        """The length; the smallest number of 32 bits where it is not known."""
        return self.formula if isinstance(self.formula, int) else _NOT_CONSTANT

    def is_size_tensor(self) -> bool:
        """False: a plugin cannot say lengths while it runs."""
        return False

    def __repr__(self) -> str:
        return f"<IDimensionExpr {self.formula}>"


class DimsExprs(list[IDimensionExpr]):
    """The lengths of a tensor; `DimsExprs(3)` has three, all 0, to be replaced."""

    def __init__(self, lengths: Iterable[IDimensionExpr] | int = ()) -> None:
        super().__init__([IDimensionExpr(0) for _ in range(lengths)] if isinstance(lengths, int) else lengths)


class IExprBuilder:
    """What `get_output_dimensions` makes lengths with."""

    def constant(self, value: int) -> IDimensionExpr:
        """A length that is a number."""
        return IDimensionExpr(int(value))

    def operation(self, op: DimensionOperation, first: IDimensionExpr, second: IDimensionExpr) -> IDimensionExpr:
        """Two lengths combined; raises `InvalidInputError` for a division by 0."""
        return IDimensionExpr(_OPERATIONS[DimensionOperation(op)](first.formula, second.formula))


def formula_of(length: Length) -> Formula:
    """The formula of a length, or the number that it is."""
    return length.formula if isinstance(length, IDimensionExpr) else int(length)


def maximum(first: Length, second: Length) -> IDimensionExpr:
    """The greater one of two lengths."""
    return IDimensionExpr(_greatest(formula_of(first), formula_of(second)))


def minimum(first: Length, second: Length) -> IDimensionExpr:
    """The lesser one of two lengths."""
    return IDimensionExpr(_least(formula_of(first), formula_of(second)))


def cdiv(first: Length, second: Length) -> IDimensionExpr:
    """The quotient of two lengths, rounded up."""
    return IDimensionExpr(_ceiling(formula_of(first), formula_of(second)))


def _plus(a: Formula, b: Formula) -> Formula:
    return a + b if isinstance(a, int) and isinstance(b, int) else ("+", a, b)


def _minus(a: Formula, b: Formula) -> Formula:
    return a - b if isinstance(a, int) and isinstance(b, int) else ("-", a, b)


def _times(a: Formula, b: Formula) -> Formula:
    return a * b if isinstance(a, int) and isinstance(b, int) else ("*", a, b)


def _greatest(a: Formula, b: Formula) -> Formula:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else ("max", a, b)


def _least(a: Formula, b: Formula) -> Formula:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else ("min", a, b)


def _floor(a: Formula, b: Formula) -> Formula:
    if b == 0:
        raise InvalidInputError("a dimension is divided by 0")
    return a // b if isinstance(a, int) and isinstance(b, int) else ("//", a, b)


def _ceiling(a: Formula, b: Formula) -> Formula:
    return _floor(_plus(a, _minus(b, 1)), b)


def _is_less(a: Formula, b: Formula) -> Formula:
    return _least(_greatest(_minus(b, a), 0), 1)


def _is_equal(a: Formula, b: Formula) -> Formula:
    return _minus(1, _greatest(_is_less(a, b), _is_less(b, a)))


_OPERATIONS: dict[DimensionOperation, Callable[[Formula, Formula], Formula]] = {
    DimensionOperation.SUM: _plus,
    DimensionOperation.PROD: _times,
    DimensionOperation.MAX: _greatest,
    DimensionOperation.MIN: _least,
    DimensionOperation.SUB: _minus,
    DimensionOperation.EQUAL: _is_equal,
    DimensionOperation.LESS: _is_less,
    DimensionOperation.FLOOR_DIV: _floor,
    DimensionOperation.CEIL_DIV: _ceiling,
}
