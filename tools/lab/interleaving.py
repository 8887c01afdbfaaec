"""Measures two programs in turns, in sessions, until the interval of their ratio is narrow or the time is up."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from mlirt.tools.lab.ratio_statistics import Ratio, ratio_of

Run = Callable[[], float]
"""One run; the seconds that it took."""
Open = Callable[[bool], tuple[Run, Run]]
"""Set both sides up anew, the second one first where the argument says so."""

_BLOCK_SECONDS = 4e-3
_MAX_RUNS = 200
_MAX_ROUNDS = 16
_MIN_ROUNDS = 3
MIN_SESSIONS = 8
_MAX_SESSIONS = 60


@dataclass(frozen=True)
class Measured:
    """Seconds of a run of the first side, its ratio to the second, and the samples that it comes from."""

    first: float
    ratio: Ratio
    sessions: list[list[float]]

    @property
    def second(self) -> float:
        """Seconds of a run of the second side: as the ratio has it, which knows nothing of drift."""
        return self.first / self.ratio.value


def measure(open_both: Open, seconds: float, resolution: float, clock: Callable[[], float] | None = None) -> Measured:
    """Run both sides in turns for about so many seconds, less where the interval is as narrow as `resolution` before.

    A round runs a block of one side and a block of the other, and every second round turns their order around, as
    does every second session with the order of setting up. Eight sessions are run however long they take.
    """
    now = clock or time.perf_counter
    start = now()
    times: list[float] = []
    sessions: list[list[float]] = []
    while True:
        sessions.append(_session(open_both, len(sessions), seconds / (2 * MIN_SESSIONS), times, now))
        if len(sessions) >= MIN_SESSIONS:
            ratio = ratio_of(sessions)
            is_late = now() - start >= seconds or len(sessions) == _MAX_SESSIONS
            if is_late or ratio.is_narrow(resolution):
                return Measured(statistics.median(times), ratio, sessions)


def _session(open_both: Open, number: int, seconds: float, times: list[float], now: Callable[[], float]) -> list[float]:
    """The ratios of a session's rounds; the seconds of runs of the first side are added to `times`."""
    sides = open_both(number % 2 == 1)
    for side in sides:
        side()  # the first run binds shapes and touches memory
    once = max(1e-9, min(min(side() for side in sides) for _ in range(2)))
    runs = max(1, min(_MAX_RUNS, round(_BLOCK_SECONDS / once)))
    start, ratios = now(), list[float]()
    while len(ratios) < _MIN_ROUNDS or (len(ratios) < _MAX_ROUNDS and now() - start < seconds):
        found = [0.0, 0.0]
        order = (0, 1) if (len(ratios) + number) % 2 == 0 else (1, 0)
        for side in order:
            found[side] = statistics.median(sides[side]() for _ in range(runs))
        times.append(found[0])
        ratios.append(found[0] / found[1])
    return ratios
