"""A progress bar on standard error for what takes longer than a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TextIO

_WIDTH = 30
_DELAY_SECONDS = 0.5
_LEFT_AFTER_SECONDS = 2.0


class ProgressBar:
    """Call it with a text, the steps done and the steps in all; it draws on a terminal, and elsewhere stays silent."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        """A `quiet` one draws nowhere."""
        self._stream = stream or sys.stderr
        self._draws = self._stream.isatty() and not quiet
        self._start = time.perf_counter()
        self._drawn = 0.0
        self._length = 0

    def __call__(self, text: str, done: int, total: int) -> None:
        """Draw, at most some ten times a second and not in the first half second."""
        now = time.perf_counter()
        if not self._draws or now - self._start < _DELAY_SECONDS or (now - self._drawn < 0.1 and done < total):
            return
        self._drawn = now
        self._write(line(text, done, total, now - self._start))

    def _write(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._length))
        self._stream.flush()
        self._length = len(text)

    def close(self) -> None:
        """Take the bar away."""
        if self._length:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()


@contextmanager
def shown(progress: Callable[[str, int, int], None] | bool) -> Generator[Callable[[str, int, int], None] | None]:
    """The listener of a build's progress: the one given, a bar that is cleared at the end for True, none for False."""
    if not isinstance(progress, bool):
        yield progress
        return
    bar = ProgressBar() if progress else None
    try:
        yield bar
    finally:
        if bar is not None:
            bar.close()


def line(text: str, done: int, total: int, seconds: float) -> str:
    """`[#####     ]  50 %  12 s, 12 s left  text`; what is left is guessed from what is done, after two seconds."""
    share = min(max(done / total, 0.0), 1.0) if total > 0 else 0.0
    filled = int(share * _WIDTH)
    left = f", {seconds / share - seconds:.0f} s left" if 0 < share < 1 and seconds >= _LEFT_AFTER_SECONDS else ""
    return f"[{'#' * filled}{' ' * (_WIDTH - filled)}] {share * 100:3.0f} %  {seconds:.0f} s{left}  {text[:40]}"
