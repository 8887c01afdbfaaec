"""Draws what the GPU benchmark found: ratios, a roofline of all layers, and the layers of each network, as SVG.

    python bench/plot.py RESULT.json OUT_DIR

RESULT.json is what `python bench/gpu.py --profile --json RESULT.json` wrote.
"""

from __future__ import annotations

import html
import json
import math
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from gpu_table import ratio
from roofline import PEAKS

_INK, _OURS, _PALE = "#333", "#2b7a78", "#c9d6d5"
_MAX_BARS = 30
Row = Mapping[str, Any]


def draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the pictures; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: Sequence[Row] = result["rows"]
    pictures = {"ratios": ratio_bars(rows)}
    for row in rows:
        if isinstance(row.get("layers"), list) and row["layers"]:
            pictures[f"{row['name']}.layers"] = layer_bars(row)
            if result["device"] in PEAKS:
                pictures[f"{row['name']}.roofline"] = roofline(row, result["device"])
    paths: list[Path] = []
    for name, text in pictures.items():
        paths.append(folder / f"{name}.svg")
        paths[-1].write_text(text)
    return paths


def ratio_bars(rows: Sequence[Row]) -> str:
    """The ratio to the fastest peer of each case; the line is a tie."""
    return ratios([(str(row["name"]), ratio(row) or 0.0) for row in rows], "time of the fastest peer over ours")


def ratios(found: Sequence[tuple[str, float]], title: str) -> str:
    """A bar for each name and ratio, 0 where there is no peer; the line is a tie."""
    scale = 500 / max([1.0, *(value for _, value in found)])
    parts = [_line(220 + scale, 20, 220 + scale, 30 + 18 * len(found))]
    for place, (name, value) in enumerate(found):
        y = 30 + 18 * place
        parts += [_text(210, y + 11, name, "end"), _bar(220, y, scale * value, _OURS)]
        parts.append(_text(226 + scale * value, y + 11, f"{value:.2f}" if value else "no peer"))
    return _svg(800, 50 + 18 * len(found), title, parts)


def layer_bars(row: Row) -> str:
    """The layers that take the most time: what each takes, and in front the part that its roof explains."""
    layers = sorted(row["layers"], key=lambda one: -one["microseconds"])[:_MAX_BARS]
    scale = 360 / max(one["microseconds"] for one in layers)
    parts: list[str] = []
    for place, one in enumerate(layers):
        y = 30 + 18 * place
        parts += [_text(330, y + 11, str(one["name"])[:48], "end"), _bar(340, y, scale * one["microseconds"], _PALE)]
        parts.append(_bar(340, y, scale * min(one["roof"], one["microseconds"]), _OURS))
        label = f"{one['microseconds']:.1f} us, {100 * one['share']:.0f} % of the roof"
        parts.append(_text(346 + scale * one["microseconds"], y + 11, label))
    return _svg(900, 50 + 18 * len(layers), f"{row['name']}: layers by time, and their roofs", parts)


def roofline(row: Row, device: str) -> str:
    """Operations a second over operations a byte, both logarithmic; the area of a dot is the layer's time."""
    peaks = PEAKS[device]
    peak = peaks.float16 if row["precision"] == "fp16" else peaks.float32
    low, high = -1.0, 4.0
    top, bottom = math.log10(peak) + 0.3, math.log10(peak) - 4.5

    def at(intensity: float, rate: float) -> tuple[float, float]:
        x = (math.log10(max(intensity, 10**low)) - low) / (high - low)
        y = (math.log10(max(rate, 10**bottom)) - bottom) / (top - bottom)
        return 60 + 620 * x, 440 - 400 * y

    knee = peak / peaks.bytes
    corners = [at(10**low, 10**low * peaks.bytes), at(knee, peak), at(10**high, peak)]
    parts = [_line(*start, *end) for start, end in pairwise(corners)]
    whole = sum(one["microseconds"] for one in row["layers"])
    for one in row["layers"]:
        if one["operations"] and one["microseconds"]:
            x, y = at(one["operations"] / one["bytes"], one["operations"] / one["microseconds"] * 1e6)
            radius = 2 + 30 * math.sqrt(one["microseconds"] / whole)
            title = html.escape(f"{one['name']}: {one['microseconds']:.1f} us, {100 * one['share']:.0f} %")
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{_OURS}" fill-opacity="0.5">'
                f"<title>{title}</title></circle>"
            )
    for exponent in range(int(low), int(high) + 1):
        parts.append(_text(at(10.0**exponent, 10**bottom)[0], 456, f"{10.0**exponent:g}", "middle"))
    for exponent in range(math.ceil(bottom), int(top) + 1):
        parts.append(_text(54, at(1, 10.0**exponent)[1] + 4, f"{10.0 ** (exponent - 12):g}", "end"))
    parts += [_text(370, 474, "operations a byte", "middle"), _text(60, 32, "10^12 operations a second")]
    return _svg(720, 490, f"{row['name']} on {device}", parts)


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">'
    background = f'<rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join([head, background, _text(width / 2, 16, title, "middle", 13), *parts, "</svg>\n"])


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 11) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="{size}" fill="{_INK}">{html.escape(text)}</text>'


def _bar(x: float, y: float, width: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="14" fill="{colour}"/>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{_INK}"/>'


def main() -> None:
    """Read a result, draw."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for path in draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])):
        print(path)


if __name__ == "__main__":
    main()
