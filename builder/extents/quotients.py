"""Arithmetic that is not a sum of products: quotients, remainders, the largest of several, one of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlirt.builder.extents.polynomials import Polynomial
from mlirt.builder.extents.ranges import Ranges
from mlirt.builder.extents.unknowns import Facts, Side


class Quotients(Ranges):
    """The unknowns of one kernel, with what is divided."""

    def __init__(self) -> None:
        super().__init__()
        self._quotients: dict[object, Polynomial] = {}

    def floor_quotient(self, left: Polynomial, right: Polynomial) -> Polynomial:
        """`left // right`, where the divisor is at least 0, and 0 divides as 1 does.

        The same quotient at the same place is the same expression, so that a remainder and its quotient cancel.
        """
        key = (left.key, right.key, tuple(fact.key for fact in self.facts), self.guards)
        if key not in self._quotients:
            self._quotients[key] = self._floor_quotient(left, right)
        return self._quotients[key]

    def _floor_quotient(self, left: Polynomial, right: Polynomial) -> Polynomial:
        if right.value == 1:
            return left
        if right.value:
            whole, rest = self.without_multiples(left, right.value)
            if rest.value is not None:
                return whole
            found = self._quotient(rest, right)
            if found.value is not None:
                return whole + found
            if not self.is_given(whole) and not self.is_given(found):
                self._limit_quotient(found, left, right, whole)
            return whole + found
        return self._quotient(left, right)

    def _limit_quotient(self, found: Polynomial, left: Polynomial, right: Polynomial, whole: Polynomial) -> None:
        """Let a part of a quotient remember what the whole one, `found + whole`, is at least and at most."""
        (number,) = found.unknowns
        unknown = self.unknowns[number]
        by = self.number_of(right)
        for side, end in (("low", self.least(left, self.facts)), ("high", self.most(left, self.facts))):
            if end is not None:
                bound = self.given(self.numbers.floor_divide(end, by)) - whole
                old: Side = getattr(unknown, side)
                setattr(unknown, side, replace(old, every=(*old.every, bound)))

    def _quotient(self, left: Polynomial, right: Polynomial) -> Polynomial:
        if right.value and (extreme := self._extreme_in(left)) is not None:
            is_most, parts = extreme
            return self.extreme(is_most, [self.floor_quotient(part, right) for part in parts])
        if self.is_given(left) and self.is_given(right):
            return self.given_quotient(left, right)
        if not self.is_given(right):
            return self._between_quotients(left, right)
        by = self.number_of(right)
        low, high = self.least(left, self.facts), self.most(left, self.facts)
        ends = [None if one is None else self.given(self.numbers.floor_divide(one, by)) for one in (low, high)]
        least, most = ends
        if least is not None and most is not None and least.value is not None and least.key == most.key:
            return least
        found = self.varying(*ends, quotient=(left, right))
        self.unknowns[-1].is_natural = self.unknowns[-1].is_natural or (
            self.is_natural(left) and self.is_natural(right)
        )
        return found

    def _extreme_in(self, expression: Polynomial) -> tuple[bool, list[Polynomial]] | None:
        """The expressions that one is the largest or the smallest of, where all else in it is given."""
        varying = [one for one in expression.unknowns if self.unknowns[one].number is None]
        if len(varying) != 1 or (extreme := self.unknowns[varying[0]].extreme) is None:
            return None
        factor, rest, is_linear = expression.split(varying[0])
        if factor.value != 1 or not is_linear:
            return None
        return extreme[0], [part + rest for part in extreme[1]]

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
        if right.value:
            return left - right * self.floor_quotient(left, right)
        zero = Polynomial.constant(0)
        most = self.extreme(True, [right.plus(-1), zero])
        return self.varying(zero, Side((most, left)))

    def extreme(self, is_most: bool, given: Sequence[Polynomial]) -> Polynomial:
        """The largest or smallest of expressions."""
        if all(map(self.is_given, given)):
            number = self.numbers.extreme(is_most, [self.number_of(one) for one in given])
            natural = (any if is_most else all)(self.is_natural(one) for one in given)
            return self.given(number, is_natural=natural)
        every, some = Side(every=tuple(given)), Side(some=tuple((one, ()) for one in given))
        found = self.varying(every, some) if is_most else self.varying(some, every)
        self.unknowns[-1].extreme = is_most, tuple(given)
        return found

    def one_of(self, given: Sequence[tuple[Polynomial, Facts]]) -> Polynomial:
        """One of several expressions, each with what holds where it is the one."""
        if len({one.key for one, _ in given}) == 1:
            return given[0][0]
        if len(given) == 2 and all(len(facts) == 1 and self.is_given(one) for one, facts in given):
            (yes, (fact,)), (no, _) = given  # a comparison, and its opposite
            if self.is_given(fact):
                numbers = [self.number_of(one) for one in (fact, yes, no)]
                return self.given(
                    self.numbers.choose(*numbers), is_natural=self.is_natural(yes) and self.is_natural(no)
                )
        side = Side(some=tuple(given))
        return self.varying(side, side)
