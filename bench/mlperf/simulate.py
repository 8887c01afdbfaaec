"""Server load on an engine that only sleeps: what the load generator, the driver and Python's lock cost by themselves.

One batch sleeps at a time, as batches share a GPU; others wait for it with the samples that they have taken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlperf.driver import GatheredQueries
from mlperf.load import LoadSettings, Summary, run_test
from mlperf.samples import SampleLibrary
from mlperf.systems import Outputs
from mlperf.workloads import Array


@dataclass(frozen=True)
class Times:
    """How long a batch sleeps: seconds of any batch, and of each of its samples."""

    batch: float
    sample: float


class SleepingSystem:
    """Takes samples where they lie, and gives zeros: `answer` bytes of each."""

    joins_arrays = True

    def __init__(self, times: Times, runs_at_once: int, answer: int) -> None:
        self.runs_at_once, self._times, self._answer = runs_at_once, times, answer
        self._turn = threading.Lock()
        self.sizes: list[int] = []
        """Rows of the batches that it has run."""

    def host_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        return np.zeros(shape, dtype)

    def run(self, feeds: Mapping[str, Array]) -> Outputs:
        rows = feeds["x"].shape[0]
        with self._turn:
            self.sizes.append(rows)
            time.sleep(self._times.batch + rows * self._times.sample)
        return {"y": np.zeros((rows, self._answer), np.uint8)}

    def close(self) -> None:
        """Nothing."""


def sleeping_samples(system: SleepingSystem, count: int, size: int) -> SampleLibrary:
    """So many samples of so many bytes."""
    return SampleLibrary(lambda _: {"x": np.zeros(size, np.uint8)}, count, system.host_array)


def simulated(
    system: SleepingSystem, library: SampleLibrary, sizes: Sequence[int], delay: float, load: LoadSettings, logs: Path
) -> Summary:
    """A performance test of Server."""
    return run_test(load, library, logs, lambda complete: GatheredQueries(library, system, complete, sizes, delay))
