"""Launches wait for what they need, directly or through others, and for nothing else."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from mlirt.runtime.launch_order import Access, lanes, predecessors, seats


def access(start: int, size: int, writes: bool, part: tuple[int, ...]) -> Access:
    return Access(start, start + size, writes, part)


PARTS = st.sampled_from([(), (), (0,), (1,), (0, 1), (0, 2)])
ACCESS = st.builds(access, st.integers(0, 9), st.integers(0, 4), st.booleans(), PARTS)
RUNS = st.lists(st.lists(ACCESS, max_size=3), max_size=12)


def read(place: int) -> Access:
    return Access(place, place + 1, writes=False)


def write(place: int) -> Access:
    return Access(place, place + 1, writes=True)


def closure(waits: list[tuple[int, ...]]) -> list[set[int]]:
    """All that each launch comes after."""
    found: list[set[int]] = []
    for needed in waits:
        found.append(set(needed).union(*(found[earlier] for earlier in needed)))
    return found


def conflict(one: list[Access], other: list[Access]) -> bool:
    pairs = [(a, b) for a in one for b in other if a.writes or b.writes]
    return any(max(a.start, b.start) < min(a.end, b.end) and not apart(a, b) for a, b in pairs)


def apart(a: Access, b: Access) -> bool:
    """Whether two accesses of one buffer are to different parts of it."""
    shared = min(len(a.part), len(b.part))
    return (a.start, a.end) == (b.start, b.end) and a.part[:shared] != b.part[:shared]


@given(RUNS)
def test_conflicts_are_kept_in_order_and_nothing_else_is(runs: list[list[Access]]) -> None:
    expected: list[tuple[int, ...]] = []
    for number, run in enumerate(runs):
        expected.append(tuple(earlier for earlier in range(number) if conflict(runs[earlier], run)))
    found = predecessors(runs)
    assert closure(found) == closure(expected)
    for number, needed in enumerate(found):
        indirect = {one for earlier in needed for one in closure(found)[earlier]}
        assert not indirect & set(needed), number


def test_readers_run_together() -> None:
    # Two branches read what the first launch wrote; the last one adds their results.
    diamond = [[write(0)], [read(0), write(1)], [read(0), write(2)], [read(1), read(2), write(3)]]
    assert predecessors(diamond) == [(), (0,), (0,), (1, 2)]


def test_memory_that_is_used_again_keeps_its_readers_in_front() -> None:
    assert predecessors([[write(0)], [read(0), write(1)], [write(0)]]) == [(), (0,), (1,)]


def test_parts_of_a_buffer_are_written_side_by_side_and_read_as_a_whole() -> None:
    halves = [[read(9), Access(0, 8, True, (number,))] for number in range(2)]
    assert predecessors([*halves, [Access(0, 8, False)]]) == [(), (), (0, 1)]


def test_a_chain_stays_in_one_lane_and_branches_part() -> None:
    assert lanes([(), (0,), (1,)], 4) == [0, 0, 0]
    assert lanes([(), (0,), (0,), (1, 2)], 4) == [0, 0, 1, 1]
    assert lanes([(), (), (), ()], 2) == [0, 1, 0, 1]


@given(RUNS, st.integers(1, 4))
def test_lanes_are_few_and_numbered_from_zero(runs: list[list[Access]], most: int) -> None:
    found = lanes(predecessors(runs), most)
    assert set(found) == set(range(len(set(found))))
    assert len(set(found)) <= most


@given(st.lists(st.integers(0, 9), max_size=9), st.integers(9, 12))
def test_launches_whose_blocks_wait_for_each_other_have_room_together(blocks: list[int], most: int) -> None:
    before = closure(predecessors(seats(blocks, most)))
    waiting = [number for number, count in enumerate(blocks) if count]
    for count in (2, 3):
        for some in combinations(waiting, count):
            if not any(one in before[other] for one, other in combinations(some, 2)):
                assert count == 2
                assert sum(blocks[number] for number in some) <= most
    assert all(not after for after, count in zip(before, blocks, strict=True) if not count)


def test_two_small_chains_run_side_by_side() -> None:
    assert predecessors(seats([3, 3, 3, 3], 8)) == [(), (), (0,), (1,)]
