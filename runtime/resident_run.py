"""Runs on inputs that stay on the device, to measure kernels without the way there and back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mlirt.runtime.device import Program, RunTimes

if TYPE_CHECKING:
    from mlirt.runtime.context import ExecutionContext


class ResidentRun:
    """Inputs that stay on the device, and the kernels that can be run on them again and again."""

    def __init__(self, program: Program, context: ExecutionContext) -> None:
        self._program = program
        self._context = context

    def execute(self) -> RunTimes:
        """Run the kernels once and wait; transfers count as nothing."""
        with self._context.lock:
            start = _now()
            self._program.execute()
            queued = _now()
            self._program.wait()
            end = _now()
            device = self._program.device_times()
        last = end if device is None else start + device[3] - device[2]
        return RunTimes(start, start if device is None else queued, start, start, start, last, last, last)


def _now() -> float:
    return time.perf_counter() * 1e3
