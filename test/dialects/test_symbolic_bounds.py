"""What is certain about dimensions holds whatever their symbols stand for."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirt.dialects.symbolic import (
    Dim,
    broadcast_length,
    ceil_div,
    evaluate,
    floor_div,
    maximum,
    minimum,
    modulo,
    sym,
)
from mlirt.dialects.symbolic_bounds import at_most, interval, is_below, never_broadcast, never_one, not_negative

N, M = sym("n"), sym("m")


def _linear(left: Dim, right: Dim, factor: int) -> Dim:
    return left + right * factor


def _larger(inner: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    linear = st.builds(_linear, inner, inner, st.integers(-2, 2))
    return st.one_of(linear, st.builds(maximum, inner, inner), st.builds(minimum, inner, inner))


_LEAVES: st.SearchStrategy[Dim] = st.one_of(st.just(N), st.just(M), st.integers(-3, 3))
DIMENSIONS: st.SearchStrategy[Dim] = st.recursive(_LEAVES, _larger, max_leaves=6)


@given(DIMENSIONS, st.integers(-4, 4))
def test_what_is_certain_holds(value: Dim, limit: int) -> None:
    numbers = [evaluate(value, {"n": n, "m": m}) for n, m in product(range(5), range(5))]
    assert not not_negative(value) or min(numbers) >= 0
    assert not at_most(value, limit) or max(numbers) <= limit


@pytest.mark.parametrize(
    "value",
    [
        maximum(N - minimum(maximum(N - 1, 0), N), 0),  # the length of x[-1:]
        minimum(N, 1),
        1 - N,
        minimum(ceil_div(N, 4), 1) - M,
        broadcast_length(minimum(N, 1), minimum(M, 1)),
    ],
)
def test_at_most_one(value: Dim) -> None:
    assert at_most(value, 1)


@pytest.mark.parametrize(
    "value",
    [
        N,
        maximum(N, 1),
        broadcast_length(N, minimum(M, 1)),
        2 - broadcast_length(N, M),
        maximum(N - minimum(maximum(N - 2, 0), N), 0),
        2,
    ],
)
def test_maybe_more_than_one(value: Dim) -> None:
    assert not at_most(value, 1)


_GROWING: st.SearchStrategy[Dim] = st.recursive(
    st.one_of(st.just(N), st.integers(-3, 6)),
    lambda inner: st.one_of(
        st.builds(_linear, inner, inner, st.integers(1, 3)),
        st.builds(maximum, inner, inner),
        st.builds(minimum, inner, inner),
        st.builds(ceil_div, inner, st.integers(1, 4)),
    ),
    max_leaves=4,
)


@given(_GROWING, _GROWING)
def test_what_is_never_repeated(left: Dim, right: Dim) -> None:
    for n in range(30):
        one, other = evaluate(left, {"n": n}), evaluate(right, {"n": n})
        assert not never_one(left) or one != 1
        assert not never_broadcast(left, right) or not (min(one, other) == 1 and max(one, other) > 1)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (N, minimum(N, 512), True),
        (2 * (N // 2), N, True),
        (2 * ceil_div(N, 2), N, False),  # 2 and 1
        (ceil_div(N, 2), N, False),  # 1 and 2
        (N, M, False),
        (2 * N, 2 * M, True),
        (N + 2, 3 * M, True),
        (N, minimum(N, 1), False),
        (N - M, N, False),
    ],
)
def test_lengths_that_are_one_together(left: Dim, right: Dim, expected: bool) -> None:
    assert never_broadcast(left, right) is expected
    assert never_broadcast(right, left) is expected


def _times(left: Dim, right: Dim) -> Dim:
    return left * right


def _divided(inner: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    numbers = st.integers(1, 4)
    quotients = st.builds(floor_div, inner, numbers), st.builds(modulo, inner, numbers)
    return st.one_of(_larger(inner), st.builds(_times, inner, inner), *quotients)


_BOUNDED: st.SearchStrategy[Dim] = st.recursive(_LEAVES, _divided, max_leaves=6)


@given(_BOUNDED, st.integers(0, 3), st.integers(0, 3), st.integers(-4, 40))
def test_where_a_dimension_lies(value: Dim, low: int, more: int, limit: int) -> None:
    bounds = {"n": (low, low + more), "m": (1, 3)}
    numbers = [evaluate(value, {"n": n, "m": m}) for n, m in product(range(low, low + more + 1), range(1, 4))]
    found = interval(value, bounds)
    assert found is not None
    assert found[0] <= min(numbers) <= max(numbers) <= found[1]
    assert not is_below(value, limit, bounds) or max(numbers) < limit


def test_what_bounds_tell() -> None:
    bounds = {"n": (1, 384)}
    assert interval(64 * N * 1024, bounds) == (65536, 64 * 384 * 1024)
    assert interval(minimum(ceil_div(N, 4), 132), bounds) == (1, 96)
    assert interval(floor_div(1000, N), bounds) == (2, 1000)
    assert is_below(N, 385, bounds)
    assert not is_below(N, 384, bounds)
    assert interval(N * M, bounds) is None
    assert interval(floor_div(7, N), {"n": (0, 4)}) is None
    assert not is_below(M, 2**31, bounds)
    assert interval(broadcast_length(N, M), {"n": (1, 5), "m": (2, 9)}) == (1, 9)
