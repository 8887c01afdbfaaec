"""Draws ratios of times with their intervals, a line for each network, as an SVG that needs nothing else."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from mlirt.tools.lab.result import Result

_LINE = 26
_LEFT, _PLOT, _RIGHT = 250.0, 420.0, 300.0
_TOP = 70.0
_MAX_LETTERS = 38
_MIN_SPREAD = math.log(1.05)
_STYLE = """
text { font: 12px sans-serif; fill: #333 } .title { font-size: 14px; font-weight: bold } .pale { fill: #888 }
.paper { fill: #fff } .grid { stroke: #ddd } .one { stroke: #888; stroke-dasharray: 4 3 }
.faster { stroke: #1b7f5c; fill: #1b7f5c } .slower { stroke: #b03a48; fill: #b03a48 } .none { stroke: #777; fill: #777 }
text.faster, text.slower, text.none { stroke: none } .estimate { fill: none; stroke: #d08c2a; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
  .paper { fill: #1c1c1e } text { fill: #ddd } .grid { stroke: #3a3a3c } .pale { fill: #999 }
  .faster { stroke: #58c9a0; fill: #58c9a0 } .slower { stroke: #f0808c; fill: #f0808c }
  .none { stroke: #aaa; fill: #aaa } text.faster, text.slower, text.none { stroke: none }
}
"""


def picture(title: str, results: Sequence[Result]) -> str:
    """The SVG: a dot and its interval where a ratio was measured, a diamond at the estimated one.

    To the right of 1 the pass makes a network faster. The scale is logarithmic, so that twice as fast and half as fast
    are equally far from it.
    """
    scale = _Scale.of(results)
    width, height = _LEFT + _PLOT + _RIGHT, _TOP + _LINE * len(results) + 50
    bottom = _TOP + _LINE * len(results)
    parts = [f'<rect class="paper" width="{width:g}" height="{height:g}"/>', _text(16, 26, title, "title")]
    parts.append(
        _text(16, 46, "time without the pass over time with it; 95 % intervals; diamonds are estimates", "pale")
    )
    for tick in scale.ticks():
        x = scale.at(tick)
        kind = "one" if tick == 1 else "grid"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{bottom:g}"/>')
        parts.append(_text(x, bottom + 16, f"{tick:g}", anchor="middle"))
    parts.append(_text(scale.at(1) - 8, bottom + 36, "slower", "pale", "end"))
    parts.append(_text(scale.at(1) + 8, bottom + 36, "faster", "pale"))
    for number, result in enumerate(results):
        parts += _line(result, scale, _TOP + _LINE * (number + 0.5))
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    body = "\n".join([f"<title>{html.escape(title)}</title>", f"<style>{_STYLE}</style>", *parts])
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n{body}\n</svg>\n'


class _Scale:
    """Where ratios lie from left to right."""

    def __init__(self, reach: float) -> None:
        self.reach = reach

    @classmethod
    def of(cls, results: Sequence[Result]) -> _Scale:
        values = [1.0]
        for result in results:
            values += [result.estimated] if result.estimated else []
            values += [result.measured.ratio.low, result.measured.ratio.high] if result.measured else []
        return cls(max(_MIN_SPREAD, 1.08 * max(abs(math.log(value)) for value in values if value > 0)))

    def at(self, ratio: float) -> float:
        return _LEFT + _PLOT * (math.log(ratio) / self.reach + 1) / 2

    def ticks(self) -> list[float]:
        """1, and round numbers on both sides of it, few enough to be read."""
        most = math.exp(self.reach)
        steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0)
        step = next((one for one in steps if (most - 1) / one <= 4), 1000.0)
        above = [round(1 + step * number, 4) for number in range(1, 5) if 1 + step * number <= most]
        if step >= 0.5:
            return [*(round(1 / one, 3) for one in reversed(above)), 1, *above]
        below = [round(1 - step * number, 4) for number in range(1, 5) if 1 - step * number >= 1 / most]
        return [*reversed(below), 1, *above]


def _line(result: Result, scale: _Scale, y: float) -> list[str]:
    verdict = result.verdict
    kind = verdict if verdict in ("faster", "slower") else "none"
    name = result.model if len(result.model) <= _MAX_LETTERS else f"..{result.model[2 - _MAX_LETTERS :]}"
    parts = [_text(_LEFT - 14, y + 4, name, anchor="end")]
    if result.estimated:
        x = scale.at(result.estimated)
        parts.append(f'<path class="estimate" d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z"/>')
    label = verdict
    if result.measured is not None:
        ratio = result.measured.ratio
        low, mean, high = map(scale.at, (ratio.low, ratio.value, ratio.high))
        parts.append(
            f'<path class="{kind}" stroke-width="2" d="M{low:.1f} {y:.1f}H{high:.1f}M{low:.1f} {y - 5:.1f}v10'
            f'M{high:.1f} {y - 5:.1f}v10"/>'
        )
        parts.append(f'<circle class="{kind}" cx="{mean:.1f}" cy="{y:.1f}" r="4"/>')
        label = f"{ratio.value:.3f} {verdict}"
    return [*parts, _text(_LEFT + _PLOT + 14, y + 4, label, kind)]


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'
