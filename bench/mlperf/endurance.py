"""Server load for minutes: whether memory stays flat, and whether every query is answered, and answered right.

First and last come accuracy tests: each sample once, every answer compared. Between them the load generator sends
queries at a rate for as long as is asked; the process's memory is read at intervals, after a first part in which pools
and caches fill.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from mlperf.answers import Check
from mlperf.load import Summary
from mlperf.session import Session, Setup, expected_of

_READINGS = 60
_SETTLED = 0.25
"""The part of the time after which memory counts as settled."""
_FLAT_MIB = 16.0
"""What memory may grow by behind that, in MiB, with no trend taken for one: allocators round."""
_PAGE_MIB = 4096 / (1 << 20)


@dataclass(frozen=True)
class Endurance:
    """What was found. memory: seconds since the begin, and MiB in memory then."""

    summary: Summary
    before: Check
    after: Check
    memory: list[tuple[float, float]]

    @property
    def growth(self) -> float:
        """MiB from the settled part's first third to its last, in the median."""
        end = self.memory[-1][0]
        settled = [size for at, size in self.memory if at >= _SETTLED * end]
        third = max(1, len(settled) // 3)
        return float(np.median(settled[-third:]) - np.median(settled[:third]))

    @property
    def is_fine(self) -> bool:
        """Whether nothing was lost or wrong, and memory stayed."""
        return not any(one.lost or one.wrong for one in (self.before, self.after)) and self.growth <= _FLAT_MIB

    def __str__(self) -> str:
        first, last = self.memory[0], self.memory[-1]
        middle, most = (1e3 * self.summary.percentile(one) for one in (50, 99))
        lines = [
            f"{self.summary.samples_per_second:.2f} samples/s completed, p50 {middle:.2f} ms, p99 {most:.2f} ms, "
            f"{'VALID' if self.summary.is_valid else 'INVALID'}",
            f"memory: {first[1]:.1f} MiB at {first[0]:.0f} s, {last[1]:.1f} MiB at {last[0]:.0f} s, "
            f"{self.growth:+.1f} MiB once settled ({len(self.memory)} readings)",
        ]
        lines += [f"answers {when} it: {one}" for when, one in (("before", self.before), ("after", self.after))]
        return "\n".join(lines)


def resident_mib() -> float:
    """What this process has in memory, in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_MIB


class MemoryReader:
    """Reads the process's memory at intervals, in a thread."""

    def __init__(self, seconds: float) -> None:
        self.readings: list[tuple[float, float]] = []
        self._begun = 0.0
        self._every = max(0.05, seconds / _READINGS)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._begun = time.monotonic()
        self._note()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._ended.wait(self._every):
            self._note()

    def _note(self) -> None:
        self.readings.append((time.monotonic() - self._begun, resident_mib()))


def endure(
    setup: Setup, logs: Path, seconds: float, rate: float, latency: float, bound: float | None = None
) -> Endurance:
    """Put a system under load for so many seconds."""
    session = Session(setup)
    expected = expected_of(setup, bound)
    place = setup.logs(logs, "endurance")
    try:
        before = session.check(place / "before", expected, rate=rate)
        with MemoryReader(seconds) as memory:
            summary = session.measure(place / "load", seconds, rate=rate, latency=latency)
        after = session.check(place / "after", expected, rate=rate)
    finally:
        session.close()
    return Endurance(summary, before, after, memory.readings)
