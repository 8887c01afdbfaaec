"""What launches wait for: the same as by all pairs of accesses, and no more work than there are accesses."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirt.passes.memory import launch_dependences
from mlirt.passes.memory.launch_dependences import Access, access_dependences

parts = st.lists(st.integers(0, 2), max_size=3).map(tuple)
accesses = st.tuples(st.integers(0, 2), parts, st.booleans())
launches = st.lists(st.lists(accesses, max_size=4), max_size=14)


def all_pairs(runs: Sequence[Sequence[Access]]) -> list[set[int]]:
    """For each launch all earlier ones that touch the same memory where one of the two writes it."""
    return [
        {
            earlier
            for earlier in range(number)
            for memory, part, writes in run
            for other_memory, other, wrote in runs[earlier]
            if memory == other_memory
            and (writes or wrote)
            and all(one == another for one, another in zip(part, other, strict=False))
        }
        for number, run in enumerate(runs)
    ]


def closure(direct: Sequence[set[int]]) -> list[set[int]]:
    found: list[set[int]] = []
    for needed in direct:
        found.append(set(needed).union(*(found[one] for one in needed)))
    return found


@given(launches)
def test_the_same_order_as_by_all_pairs(runs: list[list[Access]]) -> None:
    direct, expected = access_dependences(runs), all_pairs(runs)
    assert all(few <= many for few, many in zip(direct, expected, strict=True))
    assert closure(direct) == closure(expected)


@pytest.mark.parametrize("count", [100, 1000])
def test_a_fan_out_costs_a_few_steps_a_launch(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each branch reads one memory and writes its part of another, which one launch reads at the end."""
    runs: list[list[Access]] = [[("x", (), True)]]
    for number in range(count):
        runs.append([("x", (), False), ("y", (number,), True)])
    runs.append([("y", (), False), ("z", (), True)])
    visited = 0
    users = launch_dependences.users

    def counted(part: launch_dependences.Part, writes: bool) -> Iterator[int]:
        nonlocal visited
        visited += 1
        return users(part, writes)

    monkeypatch.setattr(launch_dependences, "users", counted)
    direct = access_dependences(runs)
    assert direct[1 : count + 1] == [{0}] * count
    assert direct[-1] == set(range(1, count + 1))
    assert visited <= 4 * len(runs)
