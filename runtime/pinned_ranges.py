"""Which pinned memory a driver gave out: looked up for each array of a batch, as asking the driver takes long."""

from __future__ import annotations

import threading
from bisect import bisect_right


class PinnedRanges:
    """Ranges of addresses that do not overlap; any thread may ask while others add and remove some."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        self._lock = threading.RLock()  # a collection of garbage in the midst of `add` may remove a range
        self._sorted: tuple[list[int], list[int]] = [], []
        """Where ranges begin and end, in order: made anew with each change, so that who reads it needs no lock."""

    def add(self, start: int, size: int) -> None:
        """Memory was given out."""
        with self._lock:
            self._sizes[start] = size
            self._sort()

    def remove(self, start: int) -> None:
        """Memory is about to be given back."""
        with self._lock:
            self._sizes.pop(start, None)
            self._sort()

    def __contains__(self, address: int) -> bool:
        starts, ends = self._sorted
        at = bisect_right(starts, address) - 1
        return at >= 0 and address < ends[at]

    def _sort(self) -> None:
        starts = sorted(self._sizes)
        self._sorted = starts, [start + self._sizes[start] for start in starts]
