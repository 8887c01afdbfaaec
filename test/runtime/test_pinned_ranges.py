"""Ranges of pinned memory that a driver has given out."""

from __future__ import annotations

import random

from mlirt.runtime.pinned_ranges import PinnedRanges


def test_a_range_has_its_bytes_and_no_others() -> None:
    ranges = PinnedRanges()
    assert 100 not in ranges
    ranges.add(100, 10)
    ranges.add(110, 1)
    ranges.add(40, 20)
    assert [address for address in range(200) if address in ranges] == [*range(40, 60), *range(100, 111)]
    ranges.remove(100)
    assert [address for address in range(200) if address in ranges] == [*range(40, 60), 110]


def test_what_was_never_added_is_removed_without_harm() -> None:
    ranges = PinnedRanges()
    ranges.add(8, 8)
    ranges.remove(9)
    assert 9 in ranges


def test_many_ranges_are_told_apart() -> None:
    chosen, ranges = random.Random(3), PinnedRanges()
    starts = chosen.sample(range(0, 4000, 4), 300)
    for start in starts:
        ranges.add(start, 3)
    for start in starts[::2]:
        ranges.remove(start)
    kept = {start + k for start in starts[1::2] for k in range(3)}
    assert {address for address in range(-4, 4010) if address in ranges} == kept
