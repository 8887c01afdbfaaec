"""Measured runs of a network on a GPU, of which one is queued ahead of the one that is waited for (trtexec's order)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlirt.errors import InvalidInputError
from mlirt.runtime.cuda_program import CudaProgram
from mlirt.runtime.device import RunTimes

if TYPE_CHECKING:
    from mlirt.runtime.context import ExecutionContext


class RunAhead:
    """Runs 0 and 1 are queued and 0 is waited for, then 2 is queued and 1 is waited for, and so on.

    The contexts take turns, each with a stream and memory of its own: the inputs of a run are on their way while the
    run before it computes, and its kernels begin when those of the run before have ended (tensorrt-features.md#30.6).
    """

    def __init__(
        self, contexts: Sequence[ExecutionContext], feeds: Mapping[str, np.ndarray], *, resident: bool
    ) -> None:
        """`resident`: upload once, and leave the outputs on the device."""
        self._slots = [_Slot(context, feeds, resident) for context in contexts]
        self._queued: deque[_Slot] = deque()
        self._last: _Slot | None = None
        self._count = 0

    def __call__(self) -> RunTimes:
        """The times of the next run."""
        while len(self._queued) < len(self._slots):
            slot = self._slots[self._count % len(self._slots)]
            slot.start(self._last)
            self._last, self._count = slot, self._count + 1
            self._queued.append(slot)
        return self._queued.popleft().finish()

    def drain(self) -> list[RunTimes]:
        """The times of what is queued; nothing is afterwards."""
        found = [slot.finish() for slot in self._queued]
        self._queued.clear()
        return found


class _Slot:
    """One context, with a run that is under way."""

    def __init__(self, context: ExecutionContext, feeds: Mapping[str, np.ndarray], resident: bool) -> None:
        self._context, self._resident = context, resident
        program, self._arrays = context.uploaded(feeds)
        if not isinstance(program, CudaProgram):
            raise InvalidInputError("runs are queued ahead on a GPU alone: this engine was built for the CPU")
        program.wait()
        self._zero = _now()  # beside which the device's clock is read: that of the upload
        program.upload(self._arrays)
        program.wait()
        self.program = program
        self._started = self._enqueued = 0.0

    def start(self, before: _Slot | None) -> None:
        """Queue a run whose kernels come behind those of another one."""
        with self._context.lock:
            self._started = _now()
            if not self._resident:
                self.program.upload(self._arrays)
            if before is not None and before is not self:
                self.program.follow(before.program)
            self.program.execute()
            self._enqueued = _now()
            if not self._resident:
                self.program.queue_download()

    def finish(self) -> RunTimes:
        """Wait for the run."""
        with self._context.lock:
            self.program.wait()
            device = self.program.device_times()
        assert device is not None
        if self._resident:
            begin, end = self._zero + device[2], self._zero + device[3]
            return RunTimes(self._started, self._enqueued, begin, begin, begin, end, end, end)
        return RunTimes(self._started, self._enqueued, *(self._started + moment for moment in device))


def _now() -> float:
    return time.perf_counter() * 1e3
