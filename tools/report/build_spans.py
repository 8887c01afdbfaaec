"""What a build spent its time on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A part of a build: what went on, in which phase, and from when to when, in seconds since the build began."""

    what: str
    phase: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start
