"""Reading through reshapes, against NumPy's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mlirt.dialects.symbolic import evaluate, sym
from mlirt.passes.fusion.view_composition import joined_axes, order_before_view, partly_joined_axes, through_view


@given(st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=3), min_size=1, max_size=3))
def test_splitting_is_linear(groups: list[list[int]]) -> None:
    before = [int(np.prod(group)) for group in groups]
    after = [size for group in groups for size in group]
    indices = through_view(before, after, [sym(f"d{axis}") for axis in range(len(after))])
    assert indices is not None
    x = np.arange(np.prod(before)).reshape(before)
    for place in np.ndindex(*after):
        env = {f"d{axis}": value for axis, value in enumerate(place)}
        assert x[tuple(evaluate(index, env) for index in indices)] == x.reshape(after)[place]


def test_joining_is_not() -> None:
    assert through_view([2, 3], [6], [sym("d0")]) is None
    assert through_view([2, 3, 4], [6, 4], [sym("d0"), sym("d1")]) is None


def test_axes_of_length_one_come_and_go() -> None:
    assert through_view([2, 1, 3], [2, 3], [sym("d0"), sym("d1")]) == (sym("d0"), 0, sym("d1"))
    assert through_view([2, 3], [1, 2, 1, 3], [0, sym("d1"), 0, sym("d3")]) == (sym("d1"), sym("d3"))
    assert through_view([1], [], []) == (0,)


def test_symbols() -> None:
    n = sym("n")
    indices = through_view([n, sym("m"), 96], [n, sym("m"), 4, 24], [sym(f"d{axis}") for axis in range(4)])
    assert indices == (sym("d0"), sym("d1"), 24 * sym("d2") + sym("d3"))
    assert through_view([n * 4, 5], [n, 4, 5], [sym("d0"), sym("d1"), sym("d2")]) == (
        4 * sym("d0") + sym("d1"),
        sym("d2"),
    )
    assert through_view([n, 4], [4, n], [sym("d0"), sym("d1")]) is None


def test_joined_axes_are_read_apart() -> None:
    index = 3 * sym("d0") + sym("d1")
    assert through_view([2, 3], [6], [index], {"d1": 3}) == (sym("d0"), sym("d1"))
    assert through_view([2, 3], [6], [index], {"d1": 4}) is None
    assert through_view([5, 2, 1, 3], [5, 6], [sym("d2"), index], {"d1": 3}) == (sym("d2"), sym("d0"), 0, sym("d1"))
    assert through_view([2, 3], [6], [3 * sym("d0")]) == (sym("d0"), 0)
    assert joined_axes([1, 2, 3, 7], [1, 6, 7]) == {1: (2, 3)}
    assert joined_axes([2, 3, 4], [24]) == {}
    assert joined_axes([6], [2, 3]) == {}


def test_parts_of_axes_are_joined() -> None:
    index = 128 * sym("d0") + 32 * sym("d1") + sym("d2")
    assert through_view([2, 128], [256], [index], {"d0": 2, "d1": 4, "d2": 32}) == (
        sym("d0"),
        32 * sym("d1") + sym("d2"),
    )
    assert through_view([2, 128], [256], [index], {"d0": 2, "d1": 5, "d2": 32}) is None
    assert partly_joined_axes([7, 2, 128], [7, 8, 32]) == {1: (2, 4)}
    assert partly_joined_axes([2, 6], [4, 3]) == {0: (2, 2)}
    assert partly_joined_axes([2, 6], [12]) == {}
    assert partly_joined_axes([3, 4], [2, 6]) == {}


def test_orders_pass_views_that_keep_groups_apart() -> None:
    assert order_before_view([5, 2, 3, 4], [5, 2, 12], [1, 0, 2]) == [1, 0, 2, 3]
    assert order_before_view([5, 6, 4], [5, 2, 12], [1, 0, 2]) is None
    assert order_before_view([5, 6], [5, 2, 3], [1, 2, 0]) == [1, 0]
    assert order_before_view([5, 1, 6], [5, 6], [1, 0]) in ([1, 2, 0], [2, 0, 1])
