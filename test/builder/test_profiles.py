"""Shape profiles that make sense, and those that do not."""

from __future__ import annotations

from typing import Any

import pytest

from mlirt.builder.profiles import Profile, pinned_shapes, read_profiles, widest
from mlirt.errors import InvalidInputError


def test_a_profile() -> None:
    found = read_profiles({"x": [(1, 3), (4, 3), (8, 3)]})
    assert found == [{"x": Profile((1, 3), (4, 3), (8, 3))}]
    assert pinned_shapes(found[0], {"x": ["n", "c"]}) == {"x": ["n", 3]}


def test_the_profile_that_covers_several() -> None:
    found = widest(read_profiles([{"x": [(2, 3)] * 3, "y": [(1,)] * 3}, {"x": [(1, 3), (4, 3), (8, 3)]}]))
    assert found == {"x": Profile((1, 3), (2, 3), (8, 3))}, "the second one leaves y open"
    assert widest([]) == {}


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(1, 3), (8, 3)], r"expected the shapes \(min, opt, max\)"),
        ((1, 3, 8), r"expected the shapes \(min, opt, max\)"),
        ([(4, 3), (1, 3), (8, 3)], "expected min <= opt <= max"),
        ([(1, 3), (1, 3, 1), (8, 3)], "expected min <= opt <= max"),
    ],
)
def test_profiles_that_contradict_themselves(shapes: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_profiles({"x": shapes})


@pytest.mark.parametrize(
    ("own", "message"),
    [(["n"], "its shapes have 2 dimensions"), (["n", 4], r"it says 3 to 3 where the input \['n', 4\] has 4")],
)
def test_profiles_that_contradict_the_network(own: list[int | str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        pinned_shapes({"x": Profile((1, 3), (4, 3), (8, 3))}, {"x": own})
