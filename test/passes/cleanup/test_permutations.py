"""Composed rearrangements do to arrays what their parts do one after the other."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mlirt.dialects.symbolic_text import parse
from mlirt.passes.cleanup.permutations import Rearrangement, factors, inverse, permuted, reshape, transpose

Array = np.ndarray[Any, np.dtype[Any]]


def apply(how: Rearrangement, x: Array) -> Array:
    middle = [int(length) for length in how.middle if isinstance(length, int)]
    return x.transpose(how.first).reshape(middle).transpose(how.second)


def splits(count: int) -> st.SearchStrategy[list[int]]:
    """Lengths with a product of 2 * 2 * 3 * 3 elements, 1 among them."""
    return st.permutations([2, 2, 3, 3, 1, 1]).flatmap(
        lambda primes: st.lists(st.integers(0, count - 1), min_size=6, max_size=6).map(
            lambda places: [prod(p for p, k in zip(primes, places, strict=True) if k == axis) for axis in range(count)]
        )
    )


@st.composite
def rearrangements(draw: st.DrawFn, source: tuple[int, ...] | None = None) -> Rearrangement:
    start = tuple(draw(splits(draw(st.integers(1, 5))))) if source is None else source
    first = tuple(draw(st.permutations(range(len(start)))))
    middle = draw(splits(draw(st.integers(1, 5)))) if draw(st.booleans()) else list(permuted(start, first))
    return Rearrangement(start, first, tuple(middle), tuple(draw(st.permutations(range(len(middle))))))


def elements(how: Rearrangement) -> Array:
    shape = [int(length) for length in how.source if isinstance(length, int)]
    return np.arange(prod(shape)).reshape(shape)


@given(rearrangements())
def test_normal_form_does_the_same(how: Rearrangement) -> None:
    x = elements(how)
    np.testing.assert_array_equal(apply(how.normalized(), x), apply(how, x))


@given(st.data())
def test_composition_does_both(data: st.DataObject) -> None:
    one = data.draw(rearrangements())
    target = tuple(int(length) for length in one.target if isinstance(length, int))
    two = data.draw(rearrangements(target))
    both, x = one.then(two), elements(one)
    if both is not None:
        np.testing.assert_array_equal(apply(both, x), apply(two, apply(one, x)))


@given(rearrangements())
def test_inverse_of_a_transposition(how: Rearrangement) -> None:
    there = transpose(how.source, how.first)
    back = there.then(transpose(there.target, inverse(how.first)))
    assert back is not None
    assert back.is_identity


def test_heads_split_and_join_are_one_transposition_each() -> None:
    """[b, s, 12, 32] -> [b, 12, s, 32] -> [12 b, s, 32] -> [12 b, 32, s] -> [b, 12, 32, s]."""
    b, s = parse("b"), parse("s")
    heads = transpose((b, s, 12, 32), (0, 2, 1, 3))
    joined = reshape((b, 12, s, 32), (b * 12, s, 32))
    flipped = transpose((b * 12, s, 32), (0, 2, 1))
    split = reshape((b * 12, 32, s), (b, 12, 32, s))
    how: Rearrangement | None = heads
    for step in (joined, flipped, split):
        assert how is not None
        how = how.then(step)
    assert how is not None
    assert how.transposition == (0, 2, 3, 1)


def test_factors_of_a_reshape() -> None:
    b = parse("b")
    assert factors((b, 12, 8), (b * 12, 4, 2)) == [((0, 1), (0,)), ((2,), (1, 2))]
    assert factors((6, 1), (2, 3)) == [((0, 1), (0, 1))]
    assert factors((b, 4), (parse("c"), 4)) is None
    assert factors((0, 4), (4, 0)) is None
