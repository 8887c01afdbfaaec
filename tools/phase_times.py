"""How long each phase of a build took, told by its reports of progress."""

from __future__ import annotations

import time
from collections.abc import Callable


class PhaseTimes:
    """Passes reports of progress on, and adds up the time from each to the next under the phase that it names.

    The name of a phase is the text up to a parenthesis: `compiling kernels (matmul_1a2b)` counts for `compiling
    kernels`.
    """

    def __init__(
        self, watcher: Callable[[str, int, int], None], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._watcher = watcher
        self._clock = clock
        self._phase, self._since = "reading the network", clock()
        self.seconds: dict[str, float] = {}

    def __call__(self, text: str, done: int, total: int) -> None:
        """A report of progress."""
        self.close()
        self._phase = text.partition(" (")[0]
        self._watcher(text, done, total)

    def close(self) -> None:
        """The build is over."""
        now = self._clock()
        self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + now - self._since
        self._since = now

    def line(self) -> str:
        """`reading the network 0.12 s, compiling kernels 3.45 s`, in the order in which phases began."""
        return ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in self.seconds.items())
