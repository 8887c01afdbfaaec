"""Runs that are repeated behind swept caches are told apart, as far as can be seen without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from fake_driver import FakeDriver
from repeated_runs import differing_runs

Array = np.ndarray[Any, np.dtype[Any]]


class Fickle:
    """Gives another number in the runs that it is told of."""

    def __init__(self, other: set[int]) -> None:
        self.other = other
        self.runs = -1

    def run(self, feeds: Mapping[str, Array], /) -> dict[str, Array]:
        self.runs += 1
        return {"y": feeds["x"] + (self.runs in self.other)}


class Watching(FakeDriver):
    """Knows how much memory was filled."""

    def __init__(self) -> None:
        super().__init__()
        self.filled: list[tuple[int, int]] = []

    def fill(self, device: int, size: int, byte: int, stream: int) -> None:
        self.filled.append((size, byte))


def test_runs_with_other_bits_are_told() -> None:
    feeds = {"x": np.zeros(3, np.float32)}
    driver = Watching()
    assert differing_runs(Fickle(set()), feeds, 6, driver) == []
    assert driver.filled == [(2 * driver.cache_bytes(), number) for number in (1, 3, 5)]
    assert differing_runs(Fickle({2, 5}), feeds, 6, Watching()) == [2, 5]
    assert differing_runs(Fickle({0}), feeds, 3, Watching()) == [1, 2, 3]
