"""Times work on one CUDA stream: contestants take turns, each in trains of runs between two events.

A train shows what the device needs for a run when the host keeps up: the launch of the first run is not in it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping

from mlirt.runtime.cuda_driver import CudaDriver, open_driver

Call = Callable[[], object]

_TRAIN_MS, _MIN_CALLS, _MAX_CALLS = 4.0, 3, 100


class Stopwatch:
    """Events on a stream."""

    def __init__(self, stream: int, driver: CudaDriver | None = None) -> None:
        self._driver = driver or open_driver()
        self._driver.activate()
        self._stream = stream
        self._start, self._end = self._driver.new_event(), self._driver.new_event()

    def wait(self) -> None:
        self._driver.synchronize(self._stream)

    def mean_ms(self, call: Call, runs: int) -> float:
        """Milliseconds of the device for a run, of `runs` that follow one another."""
        self._driver.record(self._start, self._stream)
        for _ in range(runs):
            call()
        self._driver.record(self._end, self._stream)
        self._driver.synchronize(self._stream)
        return self._driver.elapsed_ms(self._start, self._end) / runs

    def train_of(self, call: Call) -> int:
        """How many runs make a train that is long against the noise of an event."""
        self.mean_ms(call, _MIN_CALLS)
        return max(_MIN_CALLS, min(_MAX_CALLS, math.ceil(_TRAIN_MS / max(self.mean_ms(call, _MIN_CALLS), 1e-3))))

    def in_turns(self, contestants: Mapping[str, Call], rounds: int) -> dict[str, float]:
        """The median of each contestant over the rounds."""
        trains = {name: self.train_of(call) for name, call in contestants.items()}
        times: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(rounds):
            for name, call in contestants.items():
                times[name].append(self.mean_ms(call, trains[name]))
        return {name: statistics.median(found) for name, found in times.items()}
