"""Who runs a network: the thread that calls, or it and its workers, whichever takes less time in trials.

To hand launches to other threads and to wait for them takes a microsecond or more each, by the machine, the load and
the distance of the cores. Where kernels are as short as that, one thread is quicker than several and leaves the other
cores to others. Nothing that a plan knows beforehand says which it is, so the first runs are timed, and some of those
that follow. Workers that find no free core in a trial, such as beside the idle threads of another library that still
spin, make a run as long as it is alone; that outcome is soon tried again, and does not count where kernels are longer.
Results are the same to the bit with any number of threads.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from mlirt.runtime.python_callers import CALLERS

Run = Callable[[], int]
"""Runs all rows of a table; the number of the row that stopped the run, or 0."""

BRIEF_SECONDS = 25e-6
"""Other threads of Python need not go on beside a run that takes about as long as to let them, and to get in again."""
BRIEF_BESIDE_OTHERS = 5e-6
"""The same where several threads make runs: each that waits costs the others as much."""
_RUNS = 6  # of each kind in a trial
_WARM_UP = 2  # of them: caches and workers get used to the kind
_LONG_SECONDS = 500e-6  # workers are worth more than they cost in runs that take longer
_SHARED_SECONDS = 50e-6  # in runs that take longer they cost next to nothing where they do not help
_CLEARLY = 0.9  # the part of the time with workers in which the caller alone runs longer ones
_BETWEEN = 100  # runs from trial to trial, four times as many where the outcome was the same
_MAX_RUNS_BETWEEN = 64_000


class Outcomes:
    """What trials of a network have found for other shapes."""

    def __init__(self) -> None:
        self._most_alone = -1

    def note(self, size: int, *, is_alone: bool) -> None:
        """The outcome for launches that touch `size` bytes in all."""
        if is_alone:
            self._most_alone = max(self._most_alone, size)
        elif size <= self._most_alone:
            self._most_alone = size - 1

    def is_alone(self, size: int) -> bool:
        """Whether the thread that calls was the quicker one for as many bytes, or more."""
        return size <= self._most_alone


class WorkerChoice:
    """A run by whoever was quicker: workers in the first runs and in long ones.

    Where the outcome is known of shapes that touch as much memory, or more, their runs begin with it.
    """

    def __init__(
        self,
        together: Run,
        alone: Run,
        brief: Run,
        size: int,
        outcomes: Outcomes,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`together` is by workers, `alone` by the thread that calls, `brief` too, without other threads of Python.

        `size`: the bytes that launches touch in all.
        """
        self._together, self._alone, self._brief = together, alone, brief
        self._size, self._outcomes = size, outcomes
        self._clock = clock
        self._best = alone if outcomes.is_alone(size) else together
        self._times: dict[Run, list[float]] = {together: [], alone: []}
        self._beside = self._best
        """The same where several threads make runs."""
        self._between = _BETWEEN if self.is_alone else 0
        self._left = self._between
        """Runs before the next trial; less than 0 where there is no other."""

    @property
    def is_alone(self) -> bool:
        """Whether the thread that calls is the quicker one, as of the last trial."""
        return self._best is not self._together

    @property
    def is_brief(self) -> bool:
        """Whether others would gain nothing by running beside it."""
        return (self._beside if CALLERS.are_many else self._best) is self._brief

    def __call__(self) -> int:
        """Run once; the number of the row that stopped the run, or 0."""
        if self._left:
            self._left -= 1
            return self._beside() if CALLERS.are_many else self._best()
        return self._try()

    def _try(self) -> int:
        """Time a run: first those of workers, then those of the thread that calls."""
        side = self._together if len(self._times[self._together]) < _RUNS else self._alone
        start = self._clock()
        stopped = side()
        self._times[side].append(self._clock() - start)
        if len(self._times[side]) == _RUNS:
            self._end_part(side)
        return stopped

    def _end_part(self, side: Run) -> None:
        found = {one: statistics.median(times[_WARM_UP:]) for one, times in self._times.items() if times}
        if found[self._together] > _LONG_SECONDS:
            self._outcomes.note(self._size, is_alone=False)
            self._best, self._beside, self._left = self._together, self._together, -1
        elif side is self._alone:
            is_alone = _is_better_alone(found[self._alone], found[self._together])
            alone = self._brief if found[self._alone] < BRIEF_SECONDS else self._alone
            self._outcomes.note(self._size, is_alone=is_alone)
            best = alone if is_alone else self._together
            is_same = self._between > 0 and best is self._best
            self._between = min(4 * self._between, _MAX_RUNS_BETWEEN) if is_same else _BETWEEN
            self._best, self._left = best, self._between
            self._beside = self._alone if best is self._brief and found[self._alone] >= BRIEF_BESIDE_OTHERS else best
            for times in self._times.values():
                times.clear()


def _is_better_alone(alone: float, together: float) -> bool:
    """Whether the caller alone has the next runs, by the seconds of each kind."""
    return alone <= together * (1.0 if alone < _SHARED_SECONDS else _CLEARLY)
