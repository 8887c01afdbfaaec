"""What is certain about dimensions whatever their symbols stand for, which are lengths and so at least 0."""

from __future__ import annotations

from functools import lru_cache

from mlirt.dialects.symbolic import FUNCTIONS, Call, Dim, Expr, Symbol

# More least and greatest numbers than this in one dimension are not taken apart.
_MOST_CHOICES = 8


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
    return _at_most(value, limit, _MOST_CHOICES)


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
