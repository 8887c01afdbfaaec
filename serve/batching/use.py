"""What a batcher has done so far, as counts that only grow, for metrics and tests."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class BatcherUse:
    """A moment's counts."""

    requests: Mapping[str, int]
    """Requests by their outcome: ok, error, late, refused, cancelled, invalid."""
    batches: Mapping[int, int]
    """Runs by the number of rows that they had."""
    waiting: int
    """Requests in the queue now."""

    @property
    def mean_rows(self) -> float:
        """Rows of a run in the mean; 0 before the first one."""
        runs = sum(self.batches.values())
        return sum(rows * count for rows, count in self.batches.items()) / runs if runs else 0.0


class UseCounter:
    """Counts from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()
        self._batches: Counter[int] = Counter()

    def request(self, outcome: str, count: int = 1) -> None:
        """So many requests have ended in this way."""
        with self._lock:
            if count:
                self._requests[outcome] += count

    def batch(self, rows: int) -> None:
        """A run of so many rows has begun."""
        with self._lock:
            self._batches[rows] += 1

    def now(self, waiting: int) -> BatcherUse:
        """The counts of this moment."""
        with self._lock:
            return BatcherUse(dict(self._requests), dict(self._batches), waiting)
