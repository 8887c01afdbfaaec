"""Draws what bench/growth.py found: costs over sizes, both logarithmic, one SVG for each kind of network.

    python bench/growth.py nodes --json RESULT.json
    python bench/plot_growth.py OUT_DIR RESULT.json..

Each picture has a line for each mode (a cold build, a warm one, onnxruntime's session where it was measured) with its
fitted exponent; a grey line has the slope 1, which is what costs should grow with.
"""

from __future__ import annotations

import html
import json
import math
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from growth_fit import exponent

_INK, _PALE = "#333", "#bbb"
_COLOURS = ("#2b7a78", "#d08c2a", "#7a4b94", "#b03a48")
_COSTS = ("build", "session")
"""What is drawn of a mode: the first of these that it has."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 560.0, 40.0, 360.0
Table = Mapping[str, Mapping[str, float]]


class Curve(NamedTuple):
    """A cost by size."""

    name: str
    sizes: Sequence[float]
    costs: Sequence[float]


class Frame(NamedTuple):
    """Where numbers lie in the picture."""

    sizes: tuple[float, float]
    costs: tuple[float, float]

    @staticmethod
    def of(curves: Sequence[Curve]) -> Frame:
        sizes = [size for curve in curves for size in curve.sizes]
        costs = [cost for curve in curves for cost in curve.costs]
        low, high = math.floor(math.log10(min(costs))), math.ceil(math.log10(max(costs)))
        return Frame((math.log10(min(sizes)), math.log10(max(sizes))), (low, max(high, low + 1)))

    def at(self, size: float, cost: float) -> tuple[float, float]:
        across = (math.log10(size) - self.sizes[0]) / max(self.sizes[1] - self.sizes[0], 1e-9)
        up = (math.log10(cost) - self.costs[0]) / (self.costs[1] - self.costs[0])
        return _LEFT + (_RIGHT - _LEFT) * across, _BOTTOM - (_BOTTOM - _TOP) * up


def curves_of(modes: Mapping[str, Table]) -> list[Curve]:
    """A curve for each mode of a kind."""
    found: list[Curve] = []
    for mode, table in modes.items():
        costs = {float(size): next((row[name] for name in _COSTS if row.get(name)), 0.0) for size, row in table.items()}
        known = {size: cost for size, cost in sorted(costs.items()) if cost > 0}
        if known:
            found.append(Curve(mode, list(known), list(known.values())))
    return found


def picture(title: str, curves: Sequence[Curve]) -> str:
    """The SVG of some curves."""
    frame = Frame.of(curves)
    parts = [*_grid(frame, sorted({size for curve in curves for size in curve.sizes})), _linear(frame, curves[0])]
    for place, (curve, colour) in enumerate(zip(curves, _COLOURS, strict=False)):
        points = [frame.at(*point) for point in zip(curve.sizes, curve.costs, strict=True)]
        parts += [_line(one, other, colour, 2) for one, other in pairwise(points)]
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        k = exponent(curve.sizes, curve.costs)
        label = curve.name if math.isnan(k) else f"{curve.name}, k = {k:.2f}"
        parts.append(_text(_RIGHT + 12, _TOP + 12 + 18 * place, label, colour=colour))
    parts.append(_text((_LEFT + _RIGHT) / 2, _BOTTOM + 34, "nodes", "middle"))
    parts.append(_text(_LEFT, _TOP - 10, "seconds of the CPU", "middle"))
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="760" height="410" font-family="sans-serif">'
    background = '<rect width="760" height="410" fill="white"/>'
    return "\n".join([head, background, _text(380, 18, title, "middle", 13), *parts, "</svg>\n"])


def _grid(frame: Frame, sizes: Sequence[float]) -> list[str]:
    parts: list[str] = []
    for power in range(int(frame.costs[0]), int(frame.costs[1]) + 1):
        x, y = frame.at(sizes[0], 10.0**power)
        parts += [_line((x, y), (_RIGHT, y), "#e4e4e4", 1), _text(x - 8, y + 4, f"{10.0**power:g}", "end")]
    for size in sizes:
        x, _ = frame.at(size, 10.0 ** frame.costs[0])
        parts += [_line((x, _TOP), (x, _BOTTOM), "#e4e4e4", 1), _text(x, _BOTTOM + 16, f"{size:,.0f}", "middle")]
    return parts


def _linear(frame: Frame, curve: Curve) -> str:
    """The slope 1 through the last point of a curve."""
    size, cost = curve.sizes[-1], curve.costs[-1]
    first = max(curve.sizes[0], size * 10.0 ** frame.costs[0] / cost)
    return _line(frame.at(first, cost * first / size), frame.at(size, cost), _PALE, 1, dashes="4 4")


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 11, colour: str = _INK) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="{size}" fill="{colour}">{html.escape(text)}</text>'


def _line(
    start: tuple[float, float], end: tuple[float, float], colour: str, width: int, *, dashes: str = "none"
) -> str:
    ends = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dashes}"/>'


def main() -> None:
    """Draw each kind of each file."""
    folder, *files = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        result = json.loads(file.read_text())
        for kind, modes in result["kinds"].items():
            path = folder / f"nodes-{kind}-{result['target']}.svg"
            path.write_text(picture(f"{kind}, built for {result['target']}", curves_of(modes)))
            print(path)


if __name__ == "__main__":
    main()
