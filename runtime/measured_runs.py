"""Runs of a context that are made to be measured: with the time of each stage or launch."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import numpy as np

from mlirt.errors import reports_shortage
from mlirt.runtime.device import Program, RunTimes
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.run_state import MAIN

LayerAround = Callable[[str], AbstractContextManager[object]]
"""What surrounds the launches of a layer."""


class MeasuredRuns:
    """What a context offers to those who measure."""

    _manifest: Manifest
    _lock: threading.Lock
    runs: int

    @abstractmethod
    def _checked(self, feeds: Mapping[str, np.ndarray], sequence: str = MAIN) -> list[np.ndarray]: ...

    @abstractmethod
    def _run_number(self) -> list[np.ndarray]: ...

    @abstractmethod
    def _program_for(self, arrays: list[np.ndarray]) -> Program: ...

    @abstractmethod
    def _downloaded(self, program: Program, sequence: str) -> dict[str, np.ndarray]: ...

    @reports_shortage("the run")
    def run_timed(self, feeds: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], RunTimes]:
        """Run once and say when each stage began and ended."""
        with self._lock:
            arrays = self._checked(feeds) + self._run_number()
            program = self._program_for(arrays)
            start = _now()
            program.upload(arrays)
            uploaded = _now()
            program.execute()
            executed = _now()
            names = self._downloaded(program, MAIN)
            end = _now()
            device = program.device_times()
            self.runs += 1
        if device is None:
            return names, RunTimes(start, uploaded, start, uploaded, uploaded, executed, executed, end)
        return names, RunTimes(start, executed, *(start + moment for moment in device))

    @reports_shortage("the run")
    def uploaded(self, feeds: Mapping[str, np.ndarray]) -> tuple[Program, list[np.ndarray]]:
        """The program of a run that keeps times, with its inputs uploaded, and what can be uploaded again."""
        arrays = self._checked(feeds)
        with self._lock:
            arrays += self._run_number()
            program = self._program_for(arrays)
            program.upload(arrays)
        return program, arrays

    @reports_shortage("the run")
    def profile(self, feeds: Mapping[str, np.ndarray]) -> list[tuple[str, float]]:
        """(layer, milliseconds) of every launch, each run alone; there are no outputs, and the run is not counted."""
        arrays = self._checked(feeds)
        with self._lock:
            arrays += self._run_number()
            program = self._program_for(arrays)
            program.upload(arrays)
            times = program.profile()
        return [(launch.layer, ms) for launch, ms in zip(self._manifest.launches, times, strict=True)]

    @reports_shortage("the run")
    def run_launch_by_launch(self, feeds: Mapping[str, np.ndarray], around: LayerAround) -> dict[str, np.ndarray]:
        """The outputs; every launch is run alone, and waited for, inside of what `around` gives for its layer.

        Where data decide about shapes, or conditions may refuse the inputs, a run that finds them out comes first.
        """
        arrays = self._checked(feeds)
        launches = self._manifest.launches
        with self._lock:
            arrays += self._run_number()
            program = self._program_for(arrays)
            program.upload(arrays)
            program.profile(lambda index: around(launches[index].layer))
            found = self._downloaded(program, MAIN)
            self.runs += 1
        return found


def _now() -> float:
    return time.perf_counter() * 1e3
