"""How long idle workers look for the next run before they sleep: it follows from when runs come and who wants cores.

Waking a sleeping thread takes tens of microseconds, which a small network feels in every run; a thread that spins takes
a core from others, and from what a quota allows. So workers spin for some multiple of the pause that is usual between
runs, for next to nothing where runs come so rarely that spinning has been in vain, and hardly at all where a quota
counts it or other processes want the processors. Other threads of the same process are the application's own affair
(`spin_ms`): thread pools of numerical libraries spin as well, and a pool that sleeps beside one that spins always finds
its core taken when it wakes.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

_MAX_SECONDS = 50e-3
_MIN_SECONDS = 1e-3
_BRIEF_SECONDS = 50e-6
_LIMITED_SECONDS = 200e-6
_PAUSES = 8
_LOOK_AGAIN_SECONDS = 0.1
_NEWS = 0.25  # the weight of the last pause
_MAX_THREADS = 64  # of this process, that are looked at


class SpinPolicy:
    """The spinning of one pool's workers, by the pauses between its runs."""

    def __init__(self, processors: int, waiting: Callable[[], int], *, is_limited: bool, threads: int) -> None:
        """`waiting()`: how many threads of other processes run or wait for a processor. `is_limited`: by a quota."""
        self._room = (os.cpu_count() or processors) - threads
        self._waiting = waiting
        self._limit = _LIMITED_SECONDS if is_limited else _MAX_SECONDS
        self._has_room = threads <= processors
        self._is_busy = False
        self._looks_at = 0.0
        self._end: float | None = None
        self._pause = 0.0
        self._worth = 1.0

    def begin(self, now: float, wanted: float | None) -> float:
        """A run begins: for how many seconds workers spin after it; `wanted` is what the caller has set."""
        if self._end is not None:
            self._learn(now - self._end)
        if not self._has_room:
            return min(_BRIEF_SECONDS, _MAX_SECONDS if wanted is None else wanted)
        if wanted is not None:
            return wanted
        granted = self._granted()
        return min(granted, _BRIEF_SECONDS) if granted > _BRIEF_SECONDS and self._others_wait(now) else granted

    def end(self, now: float) -> None:
        """The run has ended: a pause begins."""
        self._end = now

    def _learn(self, pause: float) -> None:
        came = pause <= _MAX_SECONDS
        self._worth += _NEWS * (came - self._worth)
        if came:
            self._pause += _NEWS * (pause - self._pause)

    def _granted(self) -> float:
        if self._worth < 0.5:
            return _BRIEF_SECONDS
        return min(max(_PAUSES * self._pause, _MIN_SECONDS), self._limit)

    def _others_wait(self, now: float) -> bool:
        """Whether other processes want more processors than the pool leaves to them, as of a moment ago."""
        if now >= self._looks_at:
            self._looks_at = now + _LOOK_AGAIN_SECONDS
            self._is_busy = self._waiting() > self._room
        return self._is_busy


def runnable_elsewhere(loadavg: str = "/proc/loadavg", threads: str = "/proc/self/task") -> int:
    """How many threads of other processes run or wait for a processor, as Linux counts them; 0 where nothing tells."""
    try:
        runnable = int(Path(loadavg).read_text("ascii").split()[3].partition("/")[0])
        return runnable - _runnable_here(threads) if runnable > 1 else 0
    except (OSError, ValueError, IndexError):
        return 0


def _runnable_here(folder: str) -> int:
    """The threads of this process that run or wait for a processor, of the first few."""
    names = itertools.islice(os.listdir(folder), _MAX_THREADS)
    return sum(_is_runnable(f"{folder}/{name}/stat") for name in names)


def _is_runnable(path: str) -> bool:
    """By the state of a thread, which follows its name in brackets; a thread may have ended meanwhile."""
    try:
        return Path(path).read_bytes().rpartition(b")")[2].split()[0] == b"R"
    except (OSError, IndexError):
        return False
