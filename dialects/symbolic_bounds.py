"""What is certain about dimensions whatever their symbols stand for, which are lengths and so at least 0.

`interval` and `is_below` know more: between which lengths the symbols lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from math import gcd, prod

from mlirt.dialects.symbolic import FUNCTIONS, Call, Dim, Expr, Symbol, evaluate, symbols

# More least and greatest numbers than this in one dimension are not taken apart.
_MAX_CHOICES = 8
# Lengths that are still 1 for a symbol of this size are not looked at any further.
_MAX_TRIED_VALUES = 4096


def not_negative(value: Dim) -> bool:
    """Whether a dimension is certainly at least 0."""
    if isinstance(value, int):
        return value >= 0
    return all(c >= 0 and all(_atom_not_negative(a) for a in m) for m, c in value.terms)


def _atom_not_negative(atom: Symbol | Call) -> bool:
    if isinstance(atom, Symbol):
        return True
    if atom.function == "max":
        return not_negative(atom.left) or not_negative(atom.right)
    if atom.function == "%":
        return not_negative(atom.right)
    return not_negative(atom.left) and not_negative(atom.right)


@lru_cache(maxsize=4096)
def at_most(value: Dim, limit: int) -> bool:
    """Whether a dimension is certainly no more than a number; least and greatest numbers are taken apart."""
    return _at_most(value, limit, _MAX_CHOICES)


def _at_most(value: Dim, limit: int, choices: int) -> bool:
    if not_negative(limit - value):
        return True
    found = None if isinstance(value, int) or not choices else _extreme(value)
    if found is None or isinstance(value, int):
        return False
    atom, coefficient = found
    rest = value - coefficient * Expr((((atom,), 1),))
    # A greatest number is within a limit if both numbers are, a least one already if one of them is. That of two that
    # broadcast is either.
    combine = all if atom.function == "broadcast" or (atom.function == "max") == (coefficient > 0) else any
    return combine(_at_most(rest + coefficient * one, limit, choices - 1) for one in (atom.left, atom.right))


def _extreme(value: Expr) -> tuple[Call, int] | None:
    """A least or greatest number, or one of two that broadcast, that a dimension is a sum of, and how often."""
    for monomial, coefficient in value.terms:
        if len(monomial) == 1 and isinstance(monomial[0], Call) and monomial[0].function in FUNCTIONS:
            return monomial[0], coefficient
    return None


def is_below(value: Dim, limit: int, bounds: Mapping[str, tuple[int, int]]) -> bool:
    """Whether a dimension is certainly less than a number, with its symbols between these bounds (both included)."""
    if isinstance(value, int):
        return value < limit
    found = interval(value, bounds)
    return found is not None and found[1] < limit


def interval(value: Dim, bounds: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
    """Two numbers between which a dimension lies, both included; None where a symbol has no bounds.

    Exact for a symbol, else perhaps too wide: what a sum's terms have in common is not seen.
    """
    if isinstance(value, int):
        return value, value
    low = high = 0
    for monomial, coefficient in value.terms:
        factors = [_atom_interval(atom, bounds) for atom in monomial]
        known = [one for one in factors if one is not None]
        if len(known) < len(factors):
            return None
        ends = [coefficient * prod(ends) for ends in product(*known)]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _atom_interval(atom: Symbol | Call, bounds: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
    if isinstance(atom, Symbol):
        return bounds.get(atom.name)
    left, right = interval(atom.left, bounds), interval(atom.right, bounds)
    if left is None or right is None:
        return None
    match atom.function:
        case "max":
            return max(left[0], right[0]), max(left[1], right[1])
        case "min":
            return min(left[0], right[0]), min(left[1], right[1])
        case "broadcast":
            return min(left[0], right[0]), max(left[1], right[1])
        case "//" if right[0] > 0:
            ends = [a // b for a in left for b in right]
            return min(ends), max(ends)
        case "%" if right[0] > 0:
            return 0, right[1] - 1
        case _:
            return None


@lru_cache(maxsize=4096)
def never_one(value: Dim) -> bool:
    """Whether a dimension is certainly not 1: it is at least 2, or a multiple of another number."""
    if isinstance(value, int):
        return value != 1
    return not_negative(value - 2) or gcd(*(coefficient for _, coefficient in value.terms)) > 1


@lru_cache(maxsize=4096)
def never_broadcast(left: Dim, right: Dim) -> bool:
    """Whether one of two dimensions is certainly not 1 where the other one is longer, so that they must be equal.

    Of formulas that grow with their only symbol those of its least values are compared, until both are longer than 1.
    """
    if left == right or (never_one(left) and never_one(right)):
        return True
    names = sorted(symbols(left) | symbols(right))
    if len(names) != 1 or not _grows(left) or not _grows(right):
        return False
    for length in range(_MAX_TRIED_VALUES):
        pair = evaluate(left, {names[0]: length}), evaluate(right, {names[0]: length})
        if min(pair) > 1:
            return True
        if 1 in pair and max(pair) > 1:
            return False
    return False


def _grows(value: Dim) -> bool:
    """Whether a dimension certainly never becomes less as its symbols become more."""
    if isinstance(value, int):
        return True
    return all(
        not monomial
        or (
            c > 0 and all(map(_atom_grows, monomial)) and (len(monomial) == 1 or all(map(_atom_not_negative, monomial)))
        )
        for monomial, c in value.terms
    )


def _atom_grows(atom: Symbol | Call) -> bool:
    if isinstance(atom, Symbol):
        return True
    if atom.function == "//":
        return isinstance(atom.right, int) and atom.right > 0 and _grows(atom.left)
    return atom.function in ("max", "min") and _grows(atom.left) and _grows(atom.right)
