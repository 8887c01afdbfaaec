"""Equations between lengths, solved for one of their symbols."""

from __future__ import annotations

from collections.abc import Mapping

from mlirt.dialects.symbolic import Dim, broadcast_parts, coefficient_of, substitute, sym, symbols


def solution(left: Dim, right: Dim, order: Mapping[str, int], bound: frozenset[str]) -> tuple[str, Dim] | None:
    """A symbol or lengths that broadcast, and what they must be for `left` to equal `right`; `None` where that does not
    follow.

    Symbols are compared by their place in `order`: the later one gives way to the earlier one, and a symbol that is not
    in it stays. An expression replaces a symbol only if a run binds all its symbols, which `bound` lists. Lengths that
    broadcast, `broadcast(n, m)`, are replaced by the one of them that they must be equal to.
    """
    for together, one in ((left, right), (right, left)):
        if together != one and one in broadcast_parts(together):
            return str(together), one
    numbers = _root(left - right, order)
    if numbers is not None:
        return numbers
    sides = ((left, right), (right, left))
    ways = [(name, other) for own, other in sides if (name := symbol_of(own)) in order and name not in symbols(other)]
    fitting = [(name, other) for name, other in ways if symbol_of(other) in order or symbols(other) <= bound]
    return max(fitting, key=lambda way: order[way[0]], default=None)


def symbol_of(dim: Dim) -> str:
    """The name of a dimension that is just a symbol, else nothing."""
    names = symbols(dim)
    return next(iter(names)) if len(names) == 1 and dim == sym(*names) else ""


def _root(difference: Dim, order: Mapping[str, int]) -> tuple[str, Dim] | None:
    """The positive number that the only symbol of a linear expression must be for it to be 0."""
    names = symbols(difference)
    name = next(iter(names)) if len(names) == 1 else ""
    if name not in order:
        return None
    try:
        factor = coefficient_of(difference, name)
    except ValueError:
        return None  # nor can 0 stand for a symbol that something is divided by
    rest = substitute(difference, {name: 0})
    if not isinstance(factor, int) or not isinstance(rest, int) or rest % factor or -rest // factor < 1:
        return None
    return name, -rest // factor
