"""Bounds of index expressions: each unknown is replaced by what it is at most or at least, the newest one first.

An unknown is a number that the launch gives (or that follows from such numbers), or it varies while the kernel runs: a
loop's iteration, a lane, a share of the work. What varies has bounds that are expressions of older unknowns, so that
`start + i` with `i < size - start` is at most `size - 1`, whatever `start` is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlirt.builder.extents.numbers import Numbers
from mlirt.builder.extents.polynomials import Polynomial

Facts = tuple[Polynomial, ...]
"""Expressions that are at least 0 where an access is."""

_MOST_FACTS = 24
_MOST_STEPS = 4000
"""How many replacements one bound may take before it counts as unknown."""


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


class Ranges:
    """The unknowns of one kernel."""

    def __init__(self) -> None:
        self.numbers = Numbers()
        self.unknowns: list[Unknown] = []
        self._of_number: dict[int, int] = {}
        self._found: dict[object, int | None] = {}
        self._steps = 0
        self.facts: Facts = ()
        """What holds where the arithmetic is that is being read."""
        self.guards: frozenset[int] = frozenset()
        """Numbers that are at least 0 there."""
        self.divisors: dict[int, tuple[Polynomial, frozenset[int]]] = {}
        """By unknown the divisors that bounds take for more than 0, and the guards of the division."""

    # Making unknowns.

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
        self.unknowns.append(Unknown(None, False, _side(low), _side(high), quotient, self.guards))
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

    # Arithmetic that is not a sum of products.

    def floor_quotient(self, left: Polynomial, right: Polynomial) -> Polynomial:
        """`left // right`, where the divisor is at least 0, and 0 divides as 1 does."""
        if right.value == 1:
            return left
        if (exact := left.divided(right) if right.value else None) is not None:
            return exact
        if self.is_given(left) and self.is_given(right):
            number = self.numbers.floor_divide(self.number_of(left), self.number_of(right))
            return self.given(number, is_natural=self.is_natural(left) and self.is_natural(right))
        if not self.is_given(right):
            return self._between_quotients(left, right)
        by = self.number_of(right)
        low, high = self.least(left, self.facts), self.most(left, self.facts)
        ends = [None if one is None else self.given(self.numbers.floor_divide(one, by)) for one in (low, high)]
        return self.varying(*ends, quotient=(left, right))

    def _between_quotients(self, left: Polynomial, right: Polynomial) -> Polynomial:
        low, high = self.least(left, self.facts), self.most(left, self.facts)
        if low is None or high is None or (self.least(right)) is None:
            return self.varying(None, None)
        zero = self.numbers.constant(0)
        return self.varying(
            self.given(self.numbers.extreme(False, [low, zero])), self.given(self.numbers.extreme(True, [high, zero]))
        )

    def remainder(self, left: Polynomial, right: Polynomial) -> Polynomial:
        """`left % right`, where both are at least 0, and 0 divides as 1 does."""
        if self.is_given(left) and self.is_given(right):
            return self.given(self.numbers.remainder(self.number_of(left), self.number_of(right)), is_natural=True)
        zero = Polynomial.constant(0)
        most = right.plus(-1) if right.value else self.extreme(True, [right.plus(-1), zero])
        return self.varying(zero, Side((most, left)))

    def extreme(self, is_most: bool, given: Sequence[Polynomial]) -> Polynomial:
        """The largest or smallest of expressions."""
        if all(map(self.is_given, given)):
            number = self.numbers.extreme(is_most, [self.number_of(one) for one in given])
            natural = (any if is_most else all)(self.is_natural(one) for one in given)
            return self.given(number, is_natural=natural)
        every, some = Side(every=tuple(given)), Side(some=tuple((one, ()) for one in given))
        return self.varying(every, some) if is_most else self.varying(some, every)

    def one_of(self, given: Sequence[tuple[Polynomial, Facts]]) -> Polynomial:
        """One of several expressions, each with what holds where it is the one."""
        if len({one.key for one, _ in given}) == 1:
            return given[0][0]
        side = Side(some=tuple(given))
        return self.varying(side, side)

    def is_natural(self, expression: Polynomial) -> bool:
        """Whether an expression of given numbers is at least 0 for sure."""
        return all(
            factor > 0 and all(self.unknowns[one].is_natural for one in monomial)
            for monomial, factor in expression.terms.items()
        )

    # Bounds.

    def followed(self, facts: Facts) -> Facts:
        """Facts, and what follows: where the smallest of expressions is at least something, each of them is."""
        found = list(facts)
        for fact in found:
            if len(found) > _MOST_FACTS:
                break
            for one in fact.unknowns:
                factor, rest, is_linear = fact.split(one)
                if is_linear and factor.value and self.unknowns[one].number is None:
                    side = self.unknowns[one].high if factor.value > 0 else self.unknowns[one].low
                    found += [factor * bound + rest for bound in side.every]
        return tuple({fact.key: fact for fact in found}.values())

    def most(self, expression: Polynomial, facts: Facts = ()) -> int | None:
        """The number that an expression is at most; None where nothing bounds it."""
        self._steps = 0
        return self._bound(expression, True, facts)

    def least(self, expression: Polynomial, facts: Facts = ()) -> int | None:
        """The number that an expression is at least."""
        self._steps = 0
        return self._bound(expression, False, facts)

    def _bound(self, expression: Polynomial, is_most: bool, facts: Facts) -> int | None:
        if self.is_given(expression):
            return self.number_of(expression)
        key = (expression.key, is_most, tuple(fact.key for fact in facts))
        if key not in self._found:
            self._steps += 1
            if self._steps > _MOST_STEPS:
                return None
            self._found[key] = self._replaced(expression, is_most, facts)
        return self._found[key]

    def _replaced(self, expression: Polynomial, is_most: bool, facts: Facts) -> int | None:
        newest = max(one for one in expression.unknowns if self.unknowns[one].number is None)
        factor, rest, is_linear = expression.split(newest)
        if not is_linear or not self.is_given(factor):
            return self._product(newest, factor, rest, is_most, facts)
        if self.is_natural(factor):
            return self._end(newest, factor, rest, is_most, True, facts)
        if self.is_natural(-factor):
            return self._end(newest, factor, rest, is_most, False, facts)
        up, down = (self._end(newest, factor, rest, is_most, grows, facts) for grows in (True, False))
        return None if up is None or down is None else self.numbers.choose(self.number_of(factor), up, down)

    def _end(
        self, newest: int, factor: Polynomial, rest: Polynomial, is_most: bool, grows: bool, facts: Facts
    ) -> int | None:
        """The bound with the unknown at one of its ends: the upper one where the most counts and it `grows` with it."""
        to_high = is_most == grows
        unknown = self.unknowns[newest]
        side = unknown.high if to_high else unknown.low
        found = [self._bound(factor * one + rest, is_most, facts) for one in side.every]
        if side.some:
            each = [self._bound(factor * one + rest, is_most, (*facts, *more)) for one, more in side.some]
            known = [one for one in each if one is not None]
            found.append(self.numbers.extreme(is_most, known) if len(known) == len(each) else None)
        found += [
            self._bound(one + rest, is_most, facts) for one in self._known_multiples(newest, factor, to_high, facts)
        ]
        known = [one for one in found if one is not None]
        best = self.numbers.extreme(not is_most, known) if known else None
        return self._with_quotient(newest, factor, rest, is_most, to_high, facts, best)

    def _with_quotient(
        self,
        newest: int,
        factor: Polynomial,
        rest: Polynomial,
        is_most: bool,
        to_high: bool,
        facts: Facts,
        best: int | None,
    ) -> int | None:
        """A bound that is at least as good where the unknown is a quotient and is multiplied by the divisor again."""
        if (quotient := self.unknowns[newest].quotient) is None:
            return best
        dividend, divisor = quotient
        times = factor.divided(divisor)
        if times is None:
            return best
        end = times * (dividend if to_high else dividend - divisor.plus(-1))
        found = self._bound(end + rest, is_most, facts)
        if found is None:
            return best
        if not divisor.value:
            # What is divided by 0 is not in reach of what 0 times it is.
            if best is None:
                self.divisors[newest] = divisor, self.unknowns[newest].guards
                return found
            positive = self.number_of(divisor.plus(-1))
            return self.numbers.choose(positive, self.numbers.extreme(not is_most, [found, best]), best)
        return found if best is None else self.numbers.extreme(not is_most, [found, best])

    def _known_multiples(self, newest: int, factor: Polynomial, to_high: bool, facts: Facts) -> list[Polynomial]:
        """What factor * unknown is at the end, where facts are about a multiple of the unknown."""
        found: list[Polynomial] = []
        for fact in facts:
            part, others, is_linear = fact.split(newest)
            value = part.value
            if not value or not is_linear or (value < 0) != to_high or self._varies_with_newer(others, newest):
                continue
            # value * unknown + others >= 0
            if (times := factor.divided(Polynomial.constant(abs(value)))) is not None:
                found.append(times * (others if value < 0 else -others))
            elif self.is_given(others):
                end = self.floor_quotient(others, Polynomial.constant(abs(value)))
                found.append(factor * (end if value < 0 else -end))
        return found

    def _varies_with_newer(self, expression: Polynomial, than: int) -> bool:
        return any(one > than and self.unknowns[one].number is None for one in expression.unknowns)

    def _product(self, newest: int, factor: Polynomial, rest: Polynomial, is_most: bool, facts: Facts) -> int | None:
        """Two things that vary multiplied with each other: the extreme product of their own ends."""
        own = Polynomial.unknown(newest)
        ends = [self._bound(one, most, facts) for one in (own, factor) for most in (False, True)]
        others = self._bound(rest, is_most, facts)
        known = [one for one in ends if one is not None]
        if others is None or len(known) < len(ends):
            return None
        products = [self.numbers.multiply(a, b) for a in known[:2] for b in known[2:]]
        return self.numbers.add(others, self.numbers.extreme(is_most, products))


def _side(given: Side | Polynomial | None) -> Side:
    return given if isinstance(given, Side) else Side() if given is None else Side(every=(given,))
