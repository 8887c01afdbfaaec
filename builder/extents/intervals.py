"""Intervals of integers, one for each thread of some blocks, as arrays that broadcast over blocks and threads.

An end is an int64 array of shape (blocks or 1, threads or 1), or None where nothing bounds it. Ends stay below 2**60,
so that sums of two do not wrap; what would be larger is unbounded. Threads that are not active may have anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ends: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
End: TypeAlias = "Ends | None"

_LIMIT = 1 << 60


@dataclass(frozen=True)
class Interval:
    """From `low` to `high`, both included; the same array where the numbers are known."""

    low: End
    high: End
    most: int | None = None
    """No number is farther from 0: known without looking at all of them, where arithmetic tells."""

    @property
    def magnitude(self) -> int:
        """How far from 0 a number can be; 2**60 where nothing bounds it."""
        if self.most is not None:
            return self.most
        if self.low is None or self.high is None:
            return _LIMIT
        return max(_magnitude(self.low), 0 if self.low is self.high else _magnitude(self.high))

    @property
    def exact(self) -> End:
        """The numbers, where all of them are known."""
        return self.low if self.low is self.high else None

    @property
    def size(self) -> int:
        """How many numbers the larger end holds."""
        return max((end.size for end in (self.low, self.high) if end is not None), default=1)


ANY = Interval(None, None)


def exactly(values: Any, most: int = _LIMIT) -> Interval:
    """Numbers that are known, an array of rank 2 or one number, and perhaps how far from 0 they are at most."""
    end = np.asarray(values, np.int64).reshape(np.shape(values) or (1, 1))
    found = most if most < _LIMIT else _magnitude(end)
    return Interval(end, end, found) if found < _LIMIT else ANY


def between(low: int | None, high: int | None) -> Interval:
    """The same bounds for all threads."""
    ends = [None if end is None else exactly(end).low for end in (low, high)]
    return Interval(ends[0], ends[1])


def _end(values: Ends) -> End:
    return values if _magnitude(values) < _LIMIT else None


def _magnitude(values: Ends) -> int:
    return max(int(values.max()), -int(values.min())) if values.size else 0


EITHER = between(0, 1)
"""A truth of which nothing is known."""


def _interval(low: End, high: End) -> Interval:
    same = low is not None and high is not None and (low is high or np.array_equal(low, high))
    return Interval(low, low if same else high)


def add(a: Interval, b: Interval) -> Interval:
    """a + b"""
    if (x := a.exact) is not None and (y := b.exact) is not None:
        return exactly(x + y, a.magnitude + b.magnitude)
    return _interval(_sum(a.low, b.low), _sum(a.high, b.high))


def negate(a: Interval) -> Interval:
    """-a"""
    if a.exact is not None:
        return exactly(-a.exact, a.magnitude)
    return Interval(None if a.high is None else -a.high, None if a.low is None else -a.low)


def subtract(a: Interval, b: Interval) -> Interval:
    """a - b"""
    return add(a, negate(b))


def _sum(x: End, y: End) -> End:
    return None if x is None or y is None else _end(x + y)


def multiply(a: Interval, b: Interval) -> Interval:
    """a * b"""
    if (x := a.exact) is not None and (y := b.exact) is not None:
        most = a.magnitude * b.magnitude
        if most >= _LIMIT:
            most = _magnitude(x) * _magnitude(y)
        return exactly(x * y, most) if most < _LIMIT else ANY
    for one, other in ((a, b), (b, a)):
        if (factor := other.exact) is not None and not (factor < 0).any():
            return _interval(_product(one.low, factor), _product(one.high, factor))
    products = [_product(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    known = [one for one in products if one is not None]
    if len(known) < len(products):
        return ANY
    p, q, r, s = known
    least = np.minimum(np.minimum(p, q), np.minimum(r, s))
    return _interval(least, np.maximum(np.maximum(p, q), np.maximum(r, s)))


def _product(x: End, y: End) -> End:
    if x is None or y is None or _magnitude(x) * _magnitude(y) >= _LIMIT:
        return None
    return x * y


def largest(a: Interval, b: Interval) -> Interval:
    """The larger of two numbers."""
    if (x := a.exact) is not None and (y := b.exact) is not None:
        return exactly(np.maximum(x, y), max(a.magnitude, b.magnitude))
    return _interval(_one_or_both(np.maximum, a.low, b.low), _both(np.maximum, a.high, b.high))


def smallest(a: Interval, b: Interval) -> Interval:
    """The smaller of two numbers."""
    return negate(largest(negate(a), negate(b)))


def _both(combine: Callable[[Ends, Ends], Ends], x: End, y: End) -> End:
    return None if x is None or y is None else combine(x, y)


def _one_or_both(combine: Callable[[Ends, Ends], Ends], x: End, y: End) -> End:
    return x if y is None else y if x is None else combine(x, y)


def cut(a: Interval, low: End, high: End) -> Interval:
    """What of an interval lies between other ends."""
    return Interval(_one_or_both(np.maximum, a.low, low), _one_or_both(np.minimum, a.high, high))


def never_below(a: Interval, least: int, active: Mask) -> bool:
    """Whether no active thread has a smaller number."""
    return a.low is not None and (int(a.low.min()) >= least or not ((a.low < least) & active).any())


def floor_divide(a: Interval, b: Interval, active: Mask) -> Interval:
    """The quotient, rounded down, where all divisors are positive."""
    if b.low is None or not never_below(b, 1, active):
        return ANY
    least = np.maximum(b.low, 1)
    if a.exact is not None and b.exact is not None:
        return exactly(a.exact // least, a.magnitude)
    most = least if b.exact is not None else None if b.high is None else np.maximum(b.high, 1)
    return _interval(_quotient(np.minimum, a.low, least, most), _quotient(np.maximum, a.high, least, most))


def _quotient(pick: Callable[[Ends, Ends], Ends], x: End, least: Ends, most: End) -> End:
    if x is None:
        return None
    if most is None:  # what is divided by ever larger numbers tends to 0 or -1
        return pick(x // least, np.asarray(0 if pick is np.maximum else -1))
    return x // least if least is most else pick(x // least, x // most)


def remainder(a: Interval, b: Interval, active: Mask) -> Interval:
    """What is left by a division of numbers that are at least 0 by positive ones."""
    if not never_below(b, 1, active) or not never_below(a, 0, active):
        return ANY
    assert a.low is not None
    assert b.low is not None
    divisor = np.maximum(b.low, 1)
    if a.exact is not None and b.exact is not None:
        return exactly(a.exact % divisor, min(a.magnitude, b.magnitude))
    below = None if b.high is None else np.maximum(b.high, 1) - 1
    zero = np.zeros((1, 1), np.int64)
    found = Interval(zero, _one_or_both(np.minimum, a.high, below))
    if b.exact is None or a.high is None or found.high is None:
        return found
    alike = a.low // divisor == a.high // divisor
    return _interval(np.where(alike, a.low % divisor, 0), np.where(alike, a.high % divisor, found.high))


def choose(condition: Interval, yes: Interval, no: Interval, active: Mask) -> Interval:
    """One number where the condition is 1, another where it is 0, either where that is not known."""
    assert condition.low is not None
    assert condition.high is not None
    if not ((condition.low < 1) & active).any():
        return yes
    if not ((condition.high > 0) & active).any():
        return no
    low = _chosen(condition, yes.low, no.low, np.minimum)
    if all(one.exact is not None for one in (condition, yes, no)):
        return Interval(low, low, max(yes.magnitude, no.magnitude))
    return _interval(low, _chosen(condition, yes.high, no.high, np.maximum))


def _chosen(condition: Interval, yes: End, no: End, pick: Callable[[Ends, Ends], Ends]) -> End:
    if yes is None or no is None or condition.low is None or condition.high is None:
        return None
    chosen = np.where(condition.high > 0, yes, no)
    if condition.exact is not None:
        return chosen
    return np.where((condition.low < 1) & (condition.high > 0), pick(yes, no), chosen)


def truth(surely: Any, possibly: Any) -> Interval:
    """1 where a statement holds surely, 0 where it cannot hold, else either."""
    return _interval(np.atleast_2d(surely).astype(np.int64), np.atleast_2d(possibly).astype(np.int64))


def less(a: Interval, b: Interval, *, or_equal: bool = False) -> Interval:
    """a < b, or a <= b"""
    compare = np.less_equal if or_equal else np.less
    if (x := a.exact) is not None and (y := b.exact) is not None:
        return exactly(compare(x, y), 1)
    if (a.high is None or b.low is None) and (a.low is None or b.high is None):
        return EITHER
    return truth(
        False if a.high is None or b.low is None else compare(a.high, b.low),
        True if a.low is None or b.high is None else compare(a.low, b.high),
    )


def equal(a: Interval, b: Interval) -> Interval:
    """a == b"""
    if (x := a.exact) is not None and (y := b.exact) is not None:
        return exactly(np.equal(x, y), 1)
    if (a.high is None or b.low is None) and (a.low is None or b.high is None):
        return EITHER
    touching = both(less(a, b, or_equal=True), less(b, a, or_equal=True))
    one_number = _is_one_number(a) & _is_one_number(b)
    assert touching.high is not None
    return truth(np.where(one_number, touching.high, 0), touching.high)


def _is_one_number(a: Interval) -> Mask:
    return np.zeros((1, 1), bool) if a.low is None or a.high is None else a.low == a.high


def both(a: Interval, b: Interval) -> Interval:
    """Of truths: a and b."""
    if (x := a.exact) is not None and (y := b.exact) is not None:
        return exactly(np.minimum(x, y), 1)
    return _interval(_both(np.minimum, a.low, b.low), _both(np.minimum, a.high, b.high))


def either(a: Interval, b: Interval) -> Interval:
    """Of truths: a or b."""
    if (x := a.exact) is not None and (y := b.exact) is not None:
        return exactly(np.maximum(x, y), 1)
    return _interval(_both(np.maximum, a.low, b.low), _both(np.maximum, a.high, b.high))


def opposite(a: Interval) -> Interval:
    """Of a truth: not a."""
    return subtract(exactly(1), a)
