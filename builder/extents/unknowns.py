"""What the numbers of a kernel are made of: numbers that a launch gives, and those that vary while the kernel runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd

from mlirt.builder.extents.numbers import Numbers
from mlirt.builder.extents.polynomials import Polynomial

Facts = tuple[Polynomial, ...]
"""Expressions that are at least 0 where an access is."""


@dataclass(frozen=True)
class Side:
    """The bounds of an unknown on one side: each of `every` holds; of `some` (with facts) at least one does."""

    every: tuple[Polynomial, ...] = ()
    some: tuple[tuple[Polynomial, Facts], ...] = ()


@dataclass
class Unknown:
    """A number of the launch (`number`), or something that varies between `low` and `high`.

    A `quotient` (a, k) says that it is a divided by k > 0, rounded down.
    """

    number: int | None = None
    is_natural: bool = False
    low: Side = field(default_factory=Side)
    high: Side = field(default_factory=Side)
    quotient: tuple[Polynomial, Polynomial] | None = None
    guards: frozenset[int] = frozenset()
    """Numbers that are at least 0 where it exists."""
    extreme: tuple[bool, tuple[Polynomial, ...]] | None = None
    """Whether it is the largest or the smallest, and of which expressions."""


class Unknowns:
    """The unknowns of one kernel, and the program that computes those that launches give."""

    def __init__(self) -> None:
        self.numbers = Numbers()
        self.unknowns: list[Unknown] = []
        self.guards: frozenset[int] = frozenset()
        """Numbers that are at least 0 where the arithmetic is that is being read."""
        self._of_number: dict[int, int] = {}
        self._parts: dict[int, Polynomial] = {}
        """By number of a given unknown: the multiple and the rest that it has been split into."""
        self._below: dict[int, int] = {}
        """What such a rest is less than."""

    def given(self, number: int, *, is_natural: bool = False) -> Polynomial:
        """What the launch's numbers say, as an expression."""
        value = self.numbers.value(number)
        if value is not None:
            return Polynomial.constant(value)
        if number not in self._of_number:
            self._of_number[number] = len(self.unknowns)
            self.unknowns.append(Unknown(number=number, is_natural=is_natural))
        return Polynomial.unknown(self._of_number[number])

    def varying(
        self,
        low: Side | Polynomial | None,
        high: Side | Polynomial | None,
        quotient: tuple[Polynomial, Polynomial] | None = None,
    ) -> Polynomial:
        """Something that varies between bounds, both included; None where there is none."""
        least = _side(low)
        is_natural = any(map(self.is_natural, least.every)) or (
            bool(least.some) and all(self.is_natural(one) for one, _ in least.some)
        )
        self.unknowns.append(Unknown(None, is_natural, least, _side(high), quotient, self.guards))
        return Polynomial.unknown(len(self.unknowns) - 1)

    def is_given(self, expression: Polynomial) -> bool:
        """Whether nothing in an expression varies."""
        return all(self.unknowns[one].number is not None for one in expression.unknowns)

    def number_of(self, expression: Polynomial) -> int:
        """The number of an expression in which nothing varies."""
        total = self.numbers.constant(0)
        for monomial, factor in sorted(expression.terms.items()):
            product = self.numbers.constant(factor)
            for one in monomial:
                number = self.unknowns[one].number
                assert number is not None
                product = self.numbers.multiply(product, number)
            total = self.numbers.add(total, product)
        return total

    def given_quotient(self, left: Polynomial, right: Polynomial) -> Polynomial:
        """`left // right` where nothing varies."""
        number = self.numbers.floor_divide(self.number_of(left), self.number_of(right))
        return self.given(number, is_natural=self.is_natural(left) and self.is_natural(right))

    def is_natural(self, expression: Polynomial) -> bool:
        """Whether an expression is at least 0 for sure, as all that is in it is."""
        return all(
            factor > 0 and all(self.unknowns[one].is_natural for one in monomial)
            for monomial, factor in expression.terms.items()
        )

    def without_multiples(self, expression: Polynomial, of: int) -> tuple[Polynomial, Polynomial]:
        """(quotient, rest): what varies in the rest is multiplied by less than `of`, wherever something given is."""
        whole, rest = self.expanded(expression).split_multiples(of)
        for monomial, factor in rest.terms.items():
            given = [one for one in monomial if self.unknowns[one].number is not None]
            if given and len(given) < len(monomial):
                self._split(given[0], of // gcd(factor, of))
        if rest.unknowns & self._parts.keys():
            more, rest = self.expanded(rest).split_multiples(of)
            whole += more
        return whole, rest

    def _split(self, given: int, by: int) -> None:
        """Write a given number as a multiple of `by` and what remains, from now on."""
        number = self.unknowns[given].number
        assert number is not None
        if given in self._parts or by >= self._below.get(given, by + 1):
            return
        divisor = self.numbers.constant(by)
        is_natural = self.unknowns[given].is_natural
        whole = self.given(self.numbers.floor_divide(number, divisor), is_natural=is_natural)
        rest = self.given(self.numbers.remainder(number, divisor), is_natural=True)
        for one in rest.unknowns:
            self._below[one] = by
        self._parts[given] = whole.scaled(by) + rest

    def expanded(self, expression: Polynomial) -> Polynomial:
        """An expression in terms of the parts of what has been split."""
        while split := expression.unknowns & self._parts.keys():
            for one in split:
                expression = expression.replaced(one, self._parts[one])
        return expression


def _side(given: Side | Polynomial | None) -> Side:
    return given if isinstance(given, Side) else Side() if given is None else Side(every=(given,))
