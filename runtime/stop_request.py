"""A request to end a run early: because its time is over, or because its caller wants no answer any more."""

from __future__ import annotations

import ctypes
import time

from mlirt.errors import DeadlineError, InvalidInputError, RunCancelledError
from mlirt.runtime.systems import this_system

CANCELLED, EXPIRED = -1, -2
"""What the code of builder/spmd_code returns for a run that was asked to stop."""


class StopRequest:
    """Looked at between launches: a launch that has begun is finished.

    The main loop reads the two words at `address`: whether to stop, and the nanoseconds of the system's clock from
    which on to stop (0: never).
    """

    def __init__(self, timeout: float | None = None) -> None:
        """`timeout`: seconds from now on; InvalidInputError for a number below 0."""
        if timeout is not None and not 0 <= timeout < float("inf"):
            raise InvalidInputError(f"timeout is {timeout!r}; expected seconds from 0 on, or None to wait for ever")
        self._timeout = timeout
        self.deadline = None if timeout is None else time.monotonic() + timeout
        """In seconds of `time.monotonic`."""
        # Beyond 290 years there is no number for it.
        now = 0 if timeout is None else this_system().nanoseconds()
        nanoseconds = 0 if timeout is None else min(now + int(timeout * 1e9), (1 << 63) - 1) or 1
        self._words = (ctypes.c_int64 * 2)(0, nanoseconds)
        self.address = ctypes.addressof(self._words)

    def cancel(self) -> None:
        """Let the run stop, from any thread."""
        self._words[0] = 1

    def seconds_left(self) -> float:
        """How long one may wait; -1 for as long as it takes."""
        return -1 if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def check(self) -> None:
        """Raise `RunCancelledError` or `DeadlineError` where the run shall stop by now."""
        if self._words[0]:
            raise self.error(CANCELLED)
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise self.error(EXPIRED)

    def error(self, why: int = EXPIRED) -> DeadlineError | RunCancelledError:
        """The error for a run that was stopped."""
        if why == CANCELLED:
            return RunCancelledError("the run was cancelled, it has no outputs; run it again where they are needed")
        return DeadlineError(
            f"expected the run to end within its timeout of {self._timeout} s, but it would have taken longer and was "
            "stopped; give it more time, or let fewer callers run at once"
        )
