"""Draws the launches between what memory and what arithmetic allows: operations a second over operations a byte."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from mlirt.tools.report.subject import Subject

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 1000, 380, 70, 34


@dataclass(frozen=True)
class Peaks:
    """What a machine reaches at most: billions of operations, and of bytes, a second."""

    operations: float
    bytes: float


@dataclass(frozen=True)
class Point:
    """A launch: operations a byte, billions of operations a second, milliseconds."""

    number: int
    intensity: float
    rate: float
    median: float


def roofline_block(subject: Subject, peaks: Peaks | None) -> str:
    """The section; empty where there are no times."""
    points = points_of(subject)
    if not points:
        return ""
    roof = peaks or Peaks(max(one.rate for one in points), max(one.rate / one.intensity for one in points))
    whose = "the machine's, as given" if peaks else "the best that a launch reached here; --peak gives the machine's"
    return (
        '<section id="roofline" class="far"><h2>Roofline</h2>'
        f'<p class="hint">Each circle is a launch, its area its time. To the left the memory is the limit, to the '
        f"right arithmetic. The lines are {whose}: {roof.operations:,.1f} Gop/s and {roof.bytes:,.1f} GB/s. Bytes are "
        f"those of all tensors once, operations those of the layer's definition.</p>"
        f"{_drawing(subject, points, roof)}</section>"
    )


def points_of(subject: Subject) -> list[Point]:
    """The launches whose time and work are known."""
    found: list[Point] = []
    for number, (time, work) in enumerate(zip(subject.times or (), subject.works, strict=False)):
        if time.median > 0 and work.operations and work.bytes:
            rate = work.operations / time.median / 1e6
            found.append(Point(number, work.operations / work.bytes, rate, time.median))
    return found


@dataclass(frozen=True)
class _Axis:
    """A logarithmic axis of whole decades."""

    low: int
    high: int
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * share

    def decades(self) -> range:
        return range(self.low, self.high + 1)


def _axis(values: Sequence[float], start: float, end: float) -> _Axis:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return _Axis(low, max(high, low + 1), start, end)


def _drawing(subject: Subject, points: Sequence[Point], roof: Peaks) -> str:
    corner = roof.operations / roof.bytes
    across = _axis([*(one.intensity for one in points), corner], _LEFT, _WIDTH - 24)
    up = _axis([*(one.rate for one in points), roof.operations], _HEIGHT - _BOTTOM, 10)
    parts = [
        f'<div class="wide"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="group" aria-label="roofline of the launches">'
    ]
    parts += _grid(across, up)
    parts += _roof(across, up, roof)
    longest = max(one.median for one in points)
    for one in sorted(points, key=lambda one: -one.median):
        layer = subject.plan.manifest.launches[one.number].layer
        about = f"launch {one.number}: {layer}; {one.median:.4f} ms, {one.rate:.2f} Gop/s, {one.intensity:.2f} op/byte"
        parts.append(
            f'<a href="#launch-{one.number}"><circle class="launch" cx="{across.at(one.intensity):.1f}" '
            f'cy="{up.at(one.rate):.1f}" r="{3 + 11 * math.sqrt(one.median / longest):.1f}">'
            f"<title>{escape(about)}</title></circle></a>"
        )
    return "\n".join([*parts, "</svg></div>"])


def _grid(across: _Axis, up: _Axis) -> Iterator[str]:
    for decade in across.decades():
        x = across.at(10.0**decade)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{up.end}" y2="{up.start}"/>'
        yield f'<text x="{x:.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{10.0**decade:g}</text>'
    for decade in up.decades():
        y = up.at(10.0**decade)
        yield f'<line x1="{across.start}" x2="{across.end}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**decade:g}</text>'
    yield f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 3}" text-anchor="middle">operations a byte</text>'
    yield f'<text x="{_LEFT + 6}" y="22">Gop/s</text>'


def _roof(across: _Axis, up: _Axis, roof: Peaks) -> Iterator[str]:
    corner = roof.operations / roof.bytes
    left = max(10.0**across.low, 10.0**up.low / roof.bytes)
    ends = [(left, left * roof.bytes), (corner, roof.operations), (10.0**across.high, roof.operations)]
    places = [(across.at(x), up.at(y)) for x, y in ends]
    for (x1, y1), (x2, y2) in pairwise(places):
        yield f'<line class="roof" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
