"""Whether a run is so short that an event loop may do it itself instead of asking a thread."""

from __future__ import annotations

_BRIEF = 1e-3
"""Seconds: others wait no longer than that for the loop, and a change of thread and back costs a third of it."""
_STEADY = 32
"""So many runs in a row have to be brief: with loops the time of a network follows from its data, not from sizes."""


class BriefRuns:
    """What is known from the last runs; any thread may ask, an answer that is late by one run does no harm."""

    def __init__(self) -> None:
        self._in_a_row = 0
        self._last = 1, 0.0

    def ran(self, size: int, seconds: float) -> None:
        """A batch whose inputs have `size` bytes took so long."""
        self._last = max(size, 1), seconds
        self._in_a_row = self._in_a_row + 1 if seconds < _BRIEF else 0

    def is_brief(self, size: int) -> bool:
        """Whether inputs of `size` bytes should take less than a millisecond; work grows by lengths squared."""
        known, seconds = self._last
        return self._in_a_row >= _STEADY and seconds * max(1.0, size / known) ** 2 < _BRIEF
