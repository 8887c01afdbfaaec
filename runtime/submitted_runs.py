"""Runs that callers do not wait for: threads make them in the order in which they were handed in."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from mlirt.runtime.stop_request import StopRequest

Outputs = dict[str, np.ndarray]


class RunFuture(Future[Outputs]):
    """The outputs of a run, once there are any."""

    def __init__(self, stop: StopRequest) -> None:
        super().__init__()
        self._stop = stop

    def cancel(self) -> bool:
        """True where the run has not begun, and never will.

        False where it has: it then ends after the launch that it is at, and `result()` raises `RunCancelledError`, or
        it had ended already.
        """
        is_cancelled = super().cancel()
        if not is_cancelled:
            self._stop.cancel()
        return is_cancelled


class SubmittedRuns:
    """Some threads and the queue before them; they start when there is work, and end with this object."""

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="mlirt-run")

    def submit(self, run: Callable[[], Outputs], stop: StopRequest) -> RunFuture:
        """Let `run`, which `stop` puts an end to, be called when a thread has time for it."""
        future = RunFuture(stop)
        self._threads.submit(_complete, future, run)
        return future


def _complete(future: RunFuture, run: Callable[[], Outputs]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        found = run()
    except BaseException as error:  # whoever asks for the result is to get it
        future.set_exception(error)
    else:
        future.set_result(found)
