"""Arithmetic on intervals: whatever numbers are picked from them, the result holds what comes of these."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from mlirt.builder.extents import intervals as of
from mlirt.builder.extents.intervals import Interval

_ACTIVE = np.ones((1, 1), bool)
_LARGE = 1 << 61

numbers = some.integers(-9, 9)
bounds = some.tuples(numbers, numbers).map(lambda pair: (min(pair), max(pair)))
naturals = some.tuples(some.integers(0, 12), some.integers(0, 12)).map(lambda pair: (min(pair), max(pair)))
Ends = tuple[int, int]


def holds(interval: Interval, number: int) -> bool:
    low, high = interval.low, interval.high
    return (low is None or int(low.min()) <= number) and (high is None or number <= int(high.max()))


def check(found: Interval, a: Ends, b: Ends, plain: Callable[[int, int], int], *, is_tight: bool = False) -> None:
    results = {plain(x, y) for x, y in itertools.product(range(a[0], a[1] + 1), range(b[0], b[1] + 1))}
    assert all(holds(found, one) for one in results)
    if is_tight:
        assert found.low is not None
        assert found.high is not None
        assert (int(found.low.min()), int(found.high.max())) == (min(results), max(results))


@pytest.mark.parametrize(
    ("combine", "plain"),
    [
        (of.add, operator.add),
        (of.subtract, operator.sub),
        (of.multiply, operator.mul),
        (of.largest, max),
        (of.smallest, min),
        (of.less, operator.lt),
        (partial(of.less, or_equal=True), operator.le),
        (of.equal, operator.eq),
    ],
    ids=["+", "-", "*", "max", "min", "<", "<=", "=="],
)
@given(a=bounds, b=bounds)
def test_ends_are_those_of_all_numbers(
    combine: Callable[[Interval, Interval], Interval], plain: Callable[..., Any], a: Ends, b: Ends
) -> None:
    check(combine(of.between(*a), of.between(*b)), a, b, plain, is_tight=True)


@given(a=bounds, b=naturals)
def test_quotients_are_rounded_down(a: Ends, b: Ends) -> None:
    b = b[0] + 1, b[1] + 1
    check(of.floor_divide(of.between(*a), of.between(*b), _ACTIVE), a, b, lambda x, y: x // y, is_tight=True)


@given(a=naturals, b=naturals)
def test_remainders_hold_what_is_left(a: Ends, b: Ends) -> None:
    b = b[0] + 1, b[1] + 1
    check(of.remainder(of.between(*a), of.between(*b), _ACTIVE), a, b, lambda x, y: x % y)


@given(a=bounds)
def test_nothing_is_known_of_a_division_by_what_may_be_0(a: Ends) -> None:
    assert of.floor_divide(of.between(*a), of.between(0, 3), _ACTIVE) == of.ANY
    assert of.floor_divide(of.between(*a), of.ANY, _ACTIVE) == of.ANY


@given(a=bounds, x=bounds, y=bounds)
def test_either_is_chosen_where_the_condition_is_not_known(a: Ends, x: Ends, y: Ends) -> None:
    condition = of.less(of.between(*a), of.exactly(0))
    found = of.choose(condition, of.between(*x), of.between(*y), _ACTIVE)
    for number in range(a[0], a[1] + 1):
        assert all(holds(found, one) for one in (x if number < 0 else y))


def test_numbers_that_would_not_fit_are_unbounded() -> None:
    half = of.exactly(_LARGE >> 2)
    assert of.exactly(_LARGE).low is None
    assert of.add(half, half).high is None
    assert of.multiply(half, half).low is None
    assert of.add(of.ANY, half).high is None
    assert of.largest(of.ANY, of.exactly(3)).low is not None
    assert of.largest(of.ANY, of.exactly(3)).high is None
