"""Arithmetic on elements of shape tensors: integers, dimensions and exact quotients of them; `None` is unknown."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from mlirt.dialects.symbolic import Dim, Expr, ceil_div, floor_div, maximum, minimum, modulo
from mlirt.dialects.symbolic_bounds import not_negative

# Scales such as 0.5 or 1.25 are exact; a float like 0.1 would claim more precision than the network itself has.
MAX_DENOMINATOR = 1 << 12


@dataclass(frozen=True)
class Ratio:
    """A dimension over a positive integer that does not divide it."""

    numerator: Dim
    denominator: int

    @property
    def value(self) -> float | None:
        """The number that it is, where nothing symbolic is left."""
        return self.numerator / self.denominator if isinstance(self.numerator, int) else None


Number: TypeAlias = "int | Expr | Ratio | None"


def ratio(numerator: Dim, denominator: int) -> Number:
    """`numerator / denominator` in lowest terms."""
    if denominator < 0:
        numerator, denominator = numerator * -1, -denominator
    if denominator == 0 or denominator > MAX_DENOMINATOR:
        return None
    common = math.gcd(denominator, *_coefficients(numerator))
    numerator, denominator = floor_div(numerator, common), denominator // common
    return numerator if denominator == 1 else Ratio(numerator, denominator)


def from_float(value: float) -> Number:
    """A float as an exact number; `None` for one that is no small fraction."""
    if not math.isfinite(value) or abs(value) > 1 << 53:
        return None
    exact = Fraction(value)
    return ratio(exact.numerator, exact.denominator)


def add(a: Number, b: Number) -> Number:
    left, right = _parts(a), _parts(b)
    if left is None or right is None:
        return None
    return ratio(left[0] * right[1] + right[0] * left[1], left[1] * right[1])


def negate(a: Number) -> Number:
    return multiply(a, -1)


def subtract(a: Number, b: Number) -> Number:
    return add(a, negate(b))


def multiply(a: Number, b: Number) -> Number:
    left, right = _parts(a), _parts(b)
    if left is None or right is None:
        return 0 if a == 0 or b == 0 else None
    return ratio(left[0] * right[0], left[1] * right[1])


def divide(a: Number, b: Number) -> Number:
    """The exact quotient, as floats have it."""
    left, right = _parts(a), _parts(b)
    if left is None or right is None or right[0] == 0:
        return None
    numerator, denominator = left[0] * right[1], right[0] * left[1]
    if isinstance(denominator, int):
        return ratio(numerator, denominator)
    quotient = floor_div(numerator, denominator)
    return quotient if quotient * denominator == numerator else _proportion(numerator, denominator)


def _proportion(numerator: Dim, denominator: Expr) -> Number:
    """The constant that one polynomial is of another; `None` where they are not proportional."""
    if isinstance(numerator, int) or not numerator.terms:
        return None
    above, below = numerator.terms[0][1], denominator.terms[0][1]
    return ratio(above, below) if numerator * below == denominator * above else None


def divide_integers(a: Number, b: Number) -> Number:
    """The quotient of integers rounded toward zero."""
    if isinstance(a, int) and isinstance(b, int):
        return None if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
    if not isinstance(a, int | Expr) or not isinstance(b, int | Expr) or b == 0:
        return None
    quotient = floor_div(a, b)
    if quotient * b == a or (not_negative(a) and not_negative(b)):
        return quotient
    return None


def remainder(a: Number, b: Number) -> Number:
    """`a % b` with the sign of `b`."""
    if not isinstance(a, int | Expr) or not isinstance(b, int | Expr) or b == 0:
        return None
    return modulo(a, b)


def largest(a: Number, b: Number) -> Number:
    return _extreme(a, b, maximum, first_if_not_negative=True)


def smallest(a: Number, b: Number) -> Number:
    return _extreme(a, b, minimum, first_if_not_negative=False)


def _extreme(a: Number, b: Number, combine: Callable[[Dim, Dim], Dim], *, first_if_not_negative: bool) -> Number:
    left, right = _parts(a), _parts(b)
    if left is None or right is None:
        return None
    x, y = left[0] * right[1], right[0] * left[1]
    if not_negative(x - y):
        return a if first_if_not_negative else b
    if not_negative(y - x):
        return b if first_if_not_negative else a
    return ratio(combine(x, y), left[1] * right[1])


def floor(a: Number) -> Number:
    return floor_div(a.numerator, a.denominator) if isinstance(a, Ratio) else a


def ceiling(a: Number) -> Number:
    return ceil_div(a.numerator, a.denominator) if isinstance(a, Ratio) else a


def truncate(a: Number) -> Number:
    """Toward zero, as a cast to integer does."""
    if not isinstance(a, Ratio):
        return a
    if not_negative(a.numerator):
        return floor(a)
    return ceiling(a) if not_negative(a.numerator * -1) else None


def absolute(a: Number) -> Number:
    parts = _parts(a)
    if parts is None:
        return None
    return a if not_negative(parts[0]) else negate(a) if not_negative(parts[0] * -1) else None


def equal(a: Number, b: Number) -> Number:
    """1, 0, or unknown where lengths decide it."""
    difference = _parts(subtract(a, b))
    if difference is None:
        return None
    if isinstance(difference[0], int):
        return int(difference[0] == 0)
    certain = not_negative(difference[0] - 1) or not_negative(difference[0] * -1 - 1)
    return 0 if certain else None


def less(a: Number, b: Number) -> Number:
    difference = _parts(subtract(b, a))
    if difference is None:
        return None
    if not_negative(difference[0] - 1):
        return 1
    return 0 if not_negative(difference[0] * -1) else None


def less_equal(a: Number, b: Number) -> Number:
    return logical_not(less(b, a))


def greater(a: Number, b: Number) -> Number:
    return less(b, a)


def greater_equal(a: Number, b: Number) -> Number:
    return less_equal(b, a)


def is_true(a: Number) -> Number:
    """1 for what is certainly not 0."""
    return logical_not(equal(a, 0))


def logical_not(a: Number) -> Number:
    return 1 - a if isinstance(a, int) else None


def logical_and(a: Number, b: Number) -> Number:
    if a == 0 or b == 0:
        return 0
    return 1 if a == 1 and b == 1 else None


def logical_or(a: Number, b: Number) -> Number:
    return logical_not(logical_and(logical_not(a), logical_not(b)))


def choose(condition: Number, a: Number, b: Number) -> Number:
    if isinstance(condition, int):
        return a if condition else b
    return a if a == b else None


def _parts(a: Number) -> tuple[Dim, int] | None:
    if isinstance(a, Ratio):
        return a.numerator, a.denominator
    return None if a is None else (a, 1)


def _coefficients(value: Dim) -> list[int]:
    return [value] if isinstance(value, int) else [c for _, c in value.terms]
