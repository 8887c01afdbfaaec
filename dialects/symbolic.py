"""Symbolic dimensions: integer expressions over names, kept canonical so that equal sizes compare equal.

An expression is a polynomial whose atoms are symbols (`n`) or opaque calls (`//`, `%`, `max`, `min`, `broadcast`) of
two others.
`Dim` is an `int` or an `Expr`; every operation returns an `int` as soon as nothing symbolic is left. symbolic_text.py
reads and writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from mlirt.errors import UnsupportedError

Dim: TypeAlias = "int | Expr"
Monomial: TypeAlias = "tuple[Symbol | Call, ...]"

# A tensor has at most this many elements (tensorrt-features.md#1.47).
MAX_LENGTH = 2**31 - 1

_MAX_PRODUCTS = 1000
_MAX_TERMS = 32  # of a quotient

_CALLS: dict[str, Callable[[int, int], int]] = {
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "max": max,
    "min": min,
    "broadcast": lambda a, b: b if a == 1 else a,
}

# Calls that are written as such, not with an operator.
FUNCTIONS = ("max", "min", "broadcast")


@dataclass(frozen=True, order=True)
class Symbol:
    """A named dimension of a network input, or a size known only at run time."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Call:
    """A function of two expressions that a polynomial cannot hold: `//`, `%`, `max`, `min` or `broadcast`."""

    function: str
    left: Dim
    right: Dim

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        if self.function in FUNCTIONS:
            return f"{self.function}({self.left}, {self.right})"
        return f"{_atom_text(self.left)} {self.function} {_atom_text(self.right)}"


@dataclass(frozen=True)
class Expr:
    """A polynomial: sorted terms of (monomial, coefficient); never a plain constant."""

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: Dim) -> Dim:
        return _collect([*_terms(self), *_terms(other)])

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        return self + other * -1

    def __rsub__(self, other: Dim) -> Dim:
        return self * -1 + other

    def __mul__(self, other: Dim) -> Dim:
        if len(self.terms) * len(_terms(other)) > _MAX_PRODUCTS:
            raise UnsupportedError("a dimension is a sum of more than a thousand products of others")
        return _collect([(_sorted((*a, *b)), c * d) for a, c in _terms(self) for b, d in _terms(other)])

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return floor_div(self, other)

    def __rfloordiv__(self, other: int) -> Dim:
        return floor_div(other, self)

    def __mod__(self, other: Dim) -> Dim:
        return modulo(self, other)

    def __rmod__(self, other: int) -> Dim:
        return modulo(other, self)

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        """Computed once, as expressions are sorted by it and nest."""
        text = ""
        for monomial, coefficient in sorted(self.terms, key=_print_order):
            sign = "-" if coefficient < 0 else "+"
            body = _term_text(monomial, abs(coefficient))
            text += f" {sign} {body}" if text else ("-" if sign == "-" else "") + body
        return text

    def __repr__(self) -> str:
        return f"Expr({str(self)!r})"


def sym(name: str) -> Expr:
    """The expression that is just the symbol `name`."""
    return Expr((((Symbol(name),), 1),))


def floor_div(left: Dim, right: Dim) -> Dim:
    """`left // right`; by a number, all whole multiples of it come out, and a floor of a floor is one floor."""
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    if right == 1:
        return left
    if left == right:
        return 1
    if isinstance(right, int) and right > 0:
        whole = _collect([(m, c // right) for m, c in _terms(left)])
        rest = _collect([(m, c % right) for m, c in _terms(left)])
        return whole + (0 if isinstance(rest, int) else _floor_of_rest(rest, right))
    quotient = _divide_exactly(left, right)
    if quotient is None and _is_length(right):
        quotient = _divide_exactly(left - right + 1, right)  # q*x + x - 1: what `ceil_div` makes of a multiple
    return quotient if quotient is not None else _call("//", left, right)


def modulo(left: Dim, right: Dim) -> Dim:
    """`left % right` with the sign of `right`, as Python has it."""
    if isinstance(left, int) and isinstance(right, int):
        return left % right
    if right == 1 or left == right:
        return 0
    if isinstance(right, int) and right > 0:
        left = _collect([(m, c % right) for m, c in _terms(left)])
        if isinstance(left, int):
            return left % right
    return _call("%", left, right)


def ceil_div(left: Dim, right: Dim) -> Dim:
    """`left / right` rounded up, for positive `right`."""
    return floor_div(left + right - 1, right)


def maximum(left: Dim, right: Dim) -> Dim:
    """The larger of two dimensions."""
    if isinstance(left, int) and isinstance(right, int):
        return max(left, right)
    number, other = (left, right) if isinstance(left, int) else (right, left)
    bounded = _bounded_below(other) if isinstance(number, int) else None
    if bounded is not None and isinstance(number, int):
        left, right = bounded[0], max(bounded[1], number)
    return left if left == right else _call("max", left, right)


def _bounded_below(dimension: Dim) -> tuple[Dim, int] | None:
    """`x` and `a` of `max(x, a)`, also where a number is added to it."""
    terms = _terms(dimension)
    constant = dict(terms).get((), 0)
    atoms = [(monomial, c) for monomial, c in terms if monomial]
    if len(atoms) != 1 or atoms[0][1] != 1 or len(atoms[0][0]) != 1:
        return None
    (atom,) = atoms[0][0]
    if not isinstance(atom, Call) or atom.function != "max":
        return None
    pair = (atom.left, atom.right) if isinstance(atom.right, int) else (atom.right, atom.left)
    return (pair[0] + constant, pair[1] + constant) if isinstance(pair[1], int) else None


def minimum(left: Dim, right: Dim) -> Dim:
    """The smaller of two dimensions; no dimension is longer than `MAX_LENGTH`, which slices use for "to the end"."""
    if isinstance(left, int) and isinstance(right, int):
        return min(left, right)
    if isinstance(left, int) and left >= MAX_LENGTH:
        return right
    if isinstance(right, int) and right >= MAX_LENGTH:
        return left
    return left if left == right else _call("min", left, right)


def broadcast_length(left: Dim, right: Dim) -> Dim:
    """The length of dimensions that broadcast, which is that of both or, where one is 1, that of the other.

    It is not defined where they are neither. The order in which several lengths are combined makes no difference.
    """
    parts = sorted({part for part in (*broadcast_parts(left), *broadcast_parts(right)) if part != 1}, key=_part_order)
    if parts and isinstance(parts[0], int):
        return parts[0]
    result: Dim = parts[0] if parts else 1
    for part in parts[1:]:
        result = _call("broadcast", result, part)
    return result


def broadcast_parts(dimension: Dim) -> tuple[Dim, ...]:
    """The lengths that `broadcast_length` has combined, or the dimension itself."""
    if isinstance(dimension, int) or len(dimension.terms) != 1:
        return (dimension,)
    ((monomial, coefficient),) = dimension.terms
    atom = monomial[0] if len(monomial) == 1 else None
    if coefficient != 1 or not isinstance(atom, Call) or atom.function != "broadcast":
        return (dimension,)
    return (*broadcast_parts(atom.left), *broadcast_parts(atom.right))


def _part_order(part: Dim) -> tuple[bool, str]:
    """Numbers come first."""
    return not isinstance(part, int), str(part)


def product(dimensions: Iterable[Dim]) -> Dim:
    """The product of dimensions; 1 for none."""
    result: Dim = 1
    for dimension in dimensions:
        result = result * dimension
    return result


def symbols(dimension: Dim) -> frozenset[str]:
    """The names that a dimension depends on."""
    found: set[str] = set()
    for monomial, _ in _terms(dimension):
        for atom in monomial:
            if isinstance(atom, Symbol):
                found.add(atom.name)
            else:
                found |= symbols(atom.left) | symbols(atom.right)
    return frozenset(found)


def evaluate(dimension: Dim, env: Mapping[str, int]) -> int:
    """The value under `env`; raises `KeyError` with the name of a missing symbol."""
    result = substitute(dimension, env)
    if isinstance(result, int):
        return result
    raise KeyError(sorted(symbols(result))[0])


def numbers_of(dimensions: Iterable[Dim]) -> list[int]:
    """Dimensions without symbols as numbers; raises `KeyError` with the name of one that has a symbol."""
    return [evaluate(one, {}) for one in dimensions]


def substitute(dimension: Dim, env: Mapping[str, Dim]) -> Dim:
    """The dimension with symbols replaced, as lengths that broadcast are where `env` has their text."""
    if isinstance(dimension, int):
        return dimension
    result: Dim = 0
    for monomial, coefficient in dimension.terms:
        term: Dim = coefficient
        for atom in monomial:
            term = term * _substitute_atom(atom, env)
        result = result + term
    return result


def coefficient_of(dimension: Dim, name: str) -> Dim:
    """The factor of symbol `name` in an expression linear in it; raises `ValueError` where it is not linear."""
    factor: Dim = 0
    for monomial, coefficient in _terms(dimension):
        degree = sum(atom == Symbol(name) for atom in monomial)
        if degree > 1 or any(isinstance(a, Call) and name in symbols(Expr((((a,), 1),))) for a in monomial):
            raise ValueError(f"{dimension} is not linear in {name}")
        if degree:
            factor = factor + _collect([(tuple(a for a in monomial if a != Symbol(name)), coefficient)])
    return factor


def _is_length(dimension: Dim) -> bool:
    """Whether a dimension is a sum of products of symbols, which are at least 0."""
    return all(c > 0 and all(isinstance(atom, Symbol) for atom in m) for m, c in _terms(dimension))


def _terms(dimension: Dim) -> tuple[tuple[Monomial, int], ...]:
    return (((), dimension),) if isinstance(dimension, int) else dimension.terms


def _floor_of_rest(rest: Expr, divisor: int) -> Dim:
    """`rest // divisor`, where `(x // a + k) // divisor` is `(x + k*a) // (a*divisor)`; bounds are divided, too."""
    constant = dict(rest.terms).get((), 0)
    others = [(monomial, c) for monomial, c in rest.terms if monomial]
    if len(others) == 1 and len(others[0][0]) == 1 and others[0][1] == 1:
        inner = others[0][0][0]
        if isinstance(inner, Call) and inner.function == "//" and isinstance(inner.right, int) and inner.right > 0:
            return floor_div(inner.left + constant * inner.right, inner.right * divisor)
    bounded = _bounded_below(rest)
    if bounded is not None:
        return maximum(floor_div(bounded[0], divisor), bounded[1] // divisor)
    return _call("//", rest, divisor)


def _collect(terms: list[tuple[Monomial, int]]) -> Dim:
    totals: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        totals[monomial] = totals.get(monomial, 0) + coefficient
    kept = {m: c for m, c in totals.items() if c}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Expr(tuple(sorted(kept.items(), key=lambda item: [str(a) for a in item[0]])))


def _sorted(monomial: Monomial) -> Monomial:
    return tuple(sorted(monomial, key=str))


def _call(function: str, left: Dim, right: Dim) -> Expr:
    return Expr((((Call(function, left, right),), 1),))


def _divide_exactly(left: Dim, right: Dim) -> Dim | None:
    """`left / right` where nothing is left over: leading terms are divided until none is left."""
    divisor = max(_terms(right), key=_rank_of)
    quotient: Dim = 0
    for _ in range(_MAX_TERMS):
        if left == 0:
            return quotient
        part = _divide_term(max(_terms(left), key=_rank_of), divisor)
        if part is None:
            return None
        quotient, left = quotient + part, left - part * right
    return None


def _rank_of(term: tuple[Monomial, int]) -> tuple[int, list[str]]:
    """Terms of many factors lead, those of equally many by name."""
    return len(term[0]), [str(atom) for atom in term[0]]


def _divide_term(term: tuple[Monomial, int], divisor: tuple[Monomial, int]) -> Dim | None:
    rest = list(term[0])
    for factor in divisor[0]:
        if factor not in rest:
            return None
        rest.remove(factor)
    return None if term[1] % divisor[1] else _collect([(tuple(rest), term[1] // divisor[1])])


def _substitute_atom(atom: Symbol | Call, env: Mapping[str, Dim]) -> Dim:
    if isinstance(atom, Symbol):
        return env.get(atom.name, sym(atom.name))
    left, right = substitute(atom.left, env), substitute(atom.right, env)
    if isinstance(left, int) and isinstance(right, int):
        return _CALLS[atom.function](left, right)
    built = _BUILD[atom.function](left, right)
    return env.get(str(built), built) if atom.function == "broadcast" else built


_BUILD: dict[str, Callable[[Dim, Dim], Dim]] = {
    "//": floor_div,
    "%": modulo,
    "max": maximum,
    "min": minimum,
    "broadcast": broadcast_length,
}


def _print_order(term: tuple[Monomial, int]) -> tuple[bool, int, list[str]]:
    return (not term[0], -len(term[0]), [str(a) for a in term[0]])


def _term_text(monomial: Monomial, coefficient: int) -> str:
    factors = [_factor_text(atom) for atom in monomial]
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient))
    return "*".join(factors)


def _factor_text(atom: Symbol | Call) -> str:
    if isinstance(atom, Symbol):
        return atom.name if re.fullmatch(r"[A-Za-z_?][\w.?]*", atom.name) else f"`{atom.name}`"
    return str(atom) if atom.function in FUNCTIONS else f"({atom})"


def _atom_text(dimension: Dim) -> str:
    text = str(dimension)
    return text if re.fullmatch(r"\w+", text) else f"({text})"
