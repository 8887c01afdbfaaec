"""Sums of products of unknowns with whole numbers: the form of index arithmetic in which equal terms cancel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

Monomial = tuple[int, ...]
"""The unknowns of a product, by number, sorted; () is 1."""


class Polynomial:
    """An immutable sum of products; unknowns are numbers that mean something to whoever makes them."""

    __slots__ = ("_key", "_unknowns", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = {monomial: factor for monomial, factor in terms.items() if factor}
        self._key: frozenset[tuple[Monomial, int]] | None = None
        self._unknowns: frozenset[int] | None = None

    @staticmethod
    def constant(value: int) -> Polynomial:
        return Polynomial({(): value})

    @staticmethod
    def unknown(number: int) -> Polynomial:
        return Polynomial({(number,): 1})

    def __add__(self, other: Polynomial) -> Polynomial:
        found = dict(self.terms)
        for monomial, factor in other.terms.items():
            found[monomial] = found.get(monomial, 0) + factor
        return Polynomial(found)

    def __neg__(self) -> Polynomial:
        return self.scaled(-1)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial) -> Polynomial:
        found: dict[Monomial, int] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                monomial = tuple(sorted(left + right))
                found[monomial] = found.get(monomial, 0) + a * b
        return Polynomial(found)

    def scaled(self, factor: int) -> Polynomial:
        return Polynomial({monomial: factor * own for monomial, own in self.terms.items()})

    def plus(self, number: int) -> Polynomial:
        return self + Polynomial.constant(number)

    @property
    def key(self) -> frozenset[tuple[Monomial, int]]:
        """Equal for equal polynomials."""
        if self._key is None:
            self._key = frozenset(self.terms.items())
        return self._key

    @property
    def value(self) -> int | None:
        """The number, where nothing is unknown."""
        if not self.terms:
            return 0
        return self.terms[()] if len(self.terms) == 1 and () in self.terms else None

    @property
    def unknowns(self) -> frozenset[int]:
        """The unknowns that occur, by number."""
        if self._unknowns is None:
            self._unknowns = frozenset(number for monomial in self.terms for number in monomial)
        return self._unknowns

    def split(self, unknown: int) -> tuple[Polynomial, Polynomial, bool]:
        """(factor, rest, whether it is linear) of an unknown: the polynomial is factor * unknown + rest."""
        factor: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        is_linear = True
        for monomial, own in self.terms.items():
            if unknown in monomial:
                place = monomial.index(unknown)
                left = monomial[:place] + monomial[place + 1 :]
                is_linear = is_linear and unknown not in left
                factor[left] = own
            else:
                rest[monomial] = own
        return Polynomial(factor), Polynomial(rest), is_linear

    def replaced(self, unknown: int, by: Polynomial) -> Polynomial:
        """This with an expression in the place of an unknown."""
        if unknown not in self.unknowns:
            return self
        factor, rest, _ = self.split(unknown)
        return factor.replaced(unknown, by) * by + rest

    def split_multiples(self, of: int) -> tuple[Polynomial, Polynomial]:
        """(quotient, rest) with quotient * of + rest equal to this; the rest's constant lies between 0 and `of`."""
        whole = {monomial: factor // of for monomial, factor in self.terms.items() if not monomial or factor % of == 0}
        rest = {monomial: factor - whole.get(monomial, 0) * of for monomial, factor in self.terms.items()}
        return Polynomial(whole), Polynomial(rest)

    def divided(self, by: Polynomial) -> Polynomial | None:
        """The quotient, where it is known to be exact; `by` is a product or a multiple of this."""
        if len(by.terms) != 1:
            return next((Polynomial.constant(times) for times in _multiples(self, by)), None)
        ((divisor, factor),) = by.terms.items()
        found: dict[Monomial, int] = {}
        for monomial, own in self.terms.items():
            left = list(monomial)
            if own % factor or any(left.count(number) < divisor.count(number) for number in divisor):
                return None
            for number in divisor:
                left.remove(number)
            found[tuple(left)] = own // factor
        return Polynomial(found)


def _multiples(whole: Polynomial, part: Polynomial) -> Iterator[int]:
    for monomial, factor in part.terms.items():
        own = whole.terms.get(monomial, 0)
        if own and own % factor == 0 and part.scaled(own // factor).key == whole.key:
            yield own // factor
        return
