"""Bounds of index expressions: each unknown is replaced by what it is at most or at least, the newest one first.

An unknown is a number that the launch gives (or that follows from such numbers), or it varies while the kernel runs: a
loop's iteration, a lane, a share of the work. What varies has bounds that are expressions of older unknowns, so that
`start + i` with `i < size - start` is at most `size - 1`, whatever `start` is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd

from mlirt.builder.extents.polynomials import Polynomial
from mlirt.builder.extents.unknowns import Facts, Unknowns

_MAX_FACTS = 24
_MAX_STEPS = 4000


@dataclass(frozen=True)
class Effort:
    """How many replacements one bound may take, and all bounds of a kernel together, before the rest is unknown."""

    bound: int = _MAX_STEPS
    kernel: int = 1 << 62


class Ranges(Unknowns):
    """The unknowns of one kernel, with the bounds of what is made of them."""

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[object, int | None] = {}
        self._steps = 0
        self._all_steps = 0
        self.effort = Effort()
        self.is_cut_short = False
        """Whether a bound may be wider than it is with more effort."""
        self.facts: Facts = ()
        """What holds where the arithmetic is that is being read."""
        self.divisors: dict[int, tuple[Polynomial, frozenset[int]]] = {}
        """By unknown the divisors that bounds take for more than 0, and the guards of the division."""

    def followed(self, facts: Facts) -> Facts:
        """Facts, and what follows: of the smallest of expressions each, of alternatives the only possible one."""
        found = {fact.key: fact for fact in map(self._tightened, facts)}
        todo = list(found.values())
        while todo and len(found) <= _MAX_FACTS:
            fact = todo.pop(0)
            bounds = [one for one in found.values() if len(one.unknowns) == 1]
            for following in [*self._following(fact), *self._with_bounds(fact, bounds)]:
                if following.value is None and following.key not in found:
                    found[following.key] = following
                    todo.append(following)
        return tuple(found.values())

    def _following(self, fact: Polynomial) -> Iterator[Polynomial]:
        for one in fact.unknowns:
            factor, rest, is_linear = fact.split(one)
            if not is_linear or not factor.value or self.unknowns[one].number is not None:
                continue
            unknown = self.unknowns[one]
            side = unknown.high if factor.value > 0 else unknown.low
            for bound in side.every:
                yield self._tightened(factor * bound + rest)
            if side.some:
                possible = [(each, more) for each, more in side.some if not self._is_negative(factor * each + rest)]
                if len(possible) == 1:
                    ((each, more),) = possible
                    yield self._tightened(factor * each + rest)
                    yield from map(self._tightened, more)

    def _with_bounds(self, fact: Polynomial, bounds: Sequence[Polynomial]) -> Iterator[Polynomial]:
        """What follows from a fact where others bound one of its unknowns by a number."""
        for bound in bounds:
            (one,) = bound.unknowns
            if one not in fact.unknowns or bound.key == fact.key:
                continue
            factor, _, is_linear = fact.split(one)
            times, _, is_linear_too = bound.split(one)
            own, other = factor.value, times.value
            if is_linear and is_linear_too and own and other and own * other < 0:
                yield self._tightened(fact.scaled(abs(other)) + bound.scaled(abs(own)))

    def _is_negative(self, expression: Polynomial) -> bool:
        return expression.value is not None and expression.value < 0

    def _tightened(self, fact: Polynomial) -> Polynomial:
        """The same statement about whole numbers, divided by what divides all of it that varies."""
        varies = {m: n for m, n in fact.terms.items() if any(self.unknowns[one].number is None for one in m)}
        common = gcd(*varies.values())
        if common <= 1:
            return fact
        rest = self.given_quotient(fact - Polynomial(varies), Polynomial.constant(common))
        return Polynomial({monomial: factor // common for monomial, factor in varies.items()}) + rest

    def most(self, expression: Polynomial, facts: Facts = ()) -> int | None:
        """The number that an expression is at most; None where nothing bounds it."""
        self._steps = 0
        return self._bound(expression, True, facts)

    def least(self, expression: Polynomial, facts: Facts = ()) -> int | None:
        """The number that an expression is at least."""
        self._steps = 0
        return self._bound(expression, False, facts)

    def _bound(self, expression: Polynomial, is_most: bool, facts: Facts) -> int | None:
        expression = self.expanded(expression)
        if self.is_given(expression):
            return self.number_of(expression)
        key = (expression.key, is_most, tuple(fact.key for fact in facts))
        if key not in self._found:
            self._steps += 1
            self._all_steps += 1
            if self._steps > self.effort.bound or self._all_steps > self.effort.kernel:
                self.is_cut_short = True
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
        direct = [factor * one + rest for one in side.every]
        direct += [one + rest for one in self._known_multiples(newest, factor, to_high, facts)]
        direct += [one + rest for one in self._known_products(newest, factor, is_most, facts)]
        # The fewest unknowns left take the fewest steps; a fact that fits exactly leaves none of those that it names.
        direct = sorted(self._undominated(direct, is_most), key=self._varying_unknowns)
        found = [self._bound(one, is_most, facts) for one in direct]
        if side.some:
            each = [
                self._bound(factor * one + rest, is_most, (*known, *map(self._tightened, more)))
                for one, more in side.some
                if (known := self._facts_where(newest, one, facts)) is not None
            ]
            known = [one for one in each if one is not None]
            found.append(self.numbers.extreme(is_most, known) if len(known) == len(each) > 0 else None)
        known = [one for one in found if one is not None]
        best = self.numbers.extreme(not is_most, known) if known else None
        return self._with_quotient(newest, factor, rest, is_most, to_high, facts, best)

    def _undominated(self, given: Sequence[Polynomial], is_most: bool) -> list[Polynomial]:
        """Upper (or lower) bounds without those that another one is never above (or below)."""
        kept: list[Polynomial] = []
        for one in map(self.expanded, given):
            if any(self.is_natural(one - other if is_most else other - one) for other in kept):
                continue
            kept = [other for other in kept if not self.is_natural(other - one if is_most else one - other)]
            kept.append(one)
        return kept

    def _varying_unknowns(self, expression: Polynomial) -> int:
        return sum(self.unknowns[one].number is None for one in expression.unknowns)

    def _facts_where(self, unknown: int, one: Polynomial, facts: Facts) -> Facts | None:
        """The facts where an unknown is one of its alternatives; None where they contradict each other."""
        found = tuple(fact.replaced(unknown, one) for fact in facts)
        return None if any(map(self._is_negative, found)) else found

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
        own = Polynomial.unknown(newest)
        end = dividend if to_high else dividend - divisor.plus(-1)
        ends = [
            self._bound(times * end + left * own + rest, is_most, facts)
            for times, left in _multiples_near(factor, divisor, to_high)
        ]
        known = [one for one in ends if one is not None]
        if not known:
            return best
        found = self.numbers.extreme(not is_most, known)
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
            if newest not in fact.unknowns:
                continue
            part, others, is_linear = fact.split(newest)
            value = part.value
            if not value or not is_linear or (value < 0) != to_high or self._varies_with_newer(others, newest):
                continue
            # value * unknown + others >= 0
            if self.is_given(others) and abs(value) > 1:
                end = self.given_quotient(others, Polynomial.constant(abs(value)))
                found.append(factor * (end if value < 0 else -end))
            elif (times := factor.divided(Polynomial.constant(abs(value)))) is not None:
                found.append(times * (others if value < 0 else -others))
        return found

    def _known_products(self, newest: int, factor: Polynomial, is_most: bool, facts: Facts) -> list[Polynomial]:
        """What factor * unknown is at most (or least), where facts are about the unknown times what a launch gives.

        `place - place // n * n < size` limits a remainder by more than the divisor does, whatever `n` is.
        """
        found: list[Polynomial] = []
        for fact in facts:
            if factor.value is not None or newest not in fact.unknowns:
                continue
            part, others, is_linear = fact.split(newest)
            if not is_linear or self._varies_with_newer(others, newest):
                continue
            # part * unknown + others >= 0
            times = factor.divided(part)
            if times is not None and self.is_given(times) and self.is_natural(-times if is_most else times):
                found.append(-times * others)
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


def _multiples_near(factor: Polynomial, divisor: Polynomial, to_high: bool) -> list[tuple[Polynomial, Polynomial]]:
    """(times, left) with factor = times * divisor + left: exact, or of numbers the multiples beside it, except 0.

    What is less than the divisor is one at the upper end, where what is left has its bound at the other end.
    """
    times = factor.divided(divisor)
    if times is not None:
        found = [(times, Polynomial({}))]
        if times.value is not None and abs(times.value) > 1:
            # Where the remainder is subtracted: 2 q d - x is q d - x % d.
            sign = 1 if times.value > 0 else -1
            found.append((times.plus(-sign), divisor.scaled(sign)))
        return found
    if not factor.value or not divisor.value or (abs(factor.value) < divisor.value and not to_high):
        return []
    below = factor.value // divisor.value
    near = [one for one in (below, below + 1) if one]
    return [(Polynomial.constant(one), factor.plus(-one * divisor.value)) for one in near]
