"""Draws a tensor's distribution as SVG: how often each magnitude comes, and where the range ends."""

from __future__ import annotations

import numpy as np

from mlirt.builder.calibration.histogram import Array, Histogram

_WIDTH, _HEIGHT, _BARS = 640, 120, 160
_BASE = _HEIGHT - 18


def picture(histogram: Histogram, threshold: float) -> str:
    """Bars of logarithmic height over the magnitude; a line at the threshold, beyond which bars have another class."""
    reach = max(histogram.largest, threshold) or 1.0
    heights = _heights(histogram, reach)
    width = _WIDTH / _BARS
    ends = (np.arange(_BARS) + 1) * reach / _BARS
    are_kept = ends <= threshold * (1 + 1e-6)
    bars = "".join(
        f'<path class="{what}" d="{_bars(heights, chosen, width)}"/>'
        for what, chosen in (("kept", are_kept), ("clipped", ~are_kept))
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">'
        f"<title>elements by magnitude, logarithmic</title>{bars}"
        f'<line x1="0" x2="{_WIDTH}" y1="{_BASE}" y2="{_BASE}"/>{_mark(threshold, reach)}'
        f'<text x="0" y="{_HEIGHT - 4}">0</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT - 4}" text-anchor="end">{reach:.4g}</text></svg>'
    )


def _bars(heights: list[float], chosen: Array, width: float) -> str:
    """Some of the bars as one path."""
    return "".join(
        f"M{k * width:g} {_BASE}v-{height:.0f}h{width - 0.5:g}v{height:.0f}z"
        for k, (height, is_chosen) in enumerate(zip(heights, chosen, strict=True))
        if is_chosen and height >= 0.5
    )


def _heights(histogram: Histogram, reach: float) -> list[float]:
    """The pixels of each bar, each a share of the magnitudes up to `reach`."""
    centres = (np.arange(len(histogram.counts)) + 0.5) * histogram.bin_width
    counts = np.histogram(centres, _BARS, (0.0, reach), weights=histogram.counts)[0]
    logarithms = np.log1p(counts)
    return (logarithms / (logarithms.max() or 1.0) * (_BASE - 12)).tolist()


def _mark(threshold: float, reach: float) -> str:
    x = _WIDTH * threshold / reach
    anchor = "end" if x > _WIDTH / 2 else "start"
    shift = -4 if anchor == "end" else 4
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_BASE}" class="threshold"/>'
        f'<text x="{x + shift:.1f}" y="10" text-anchor="{anchor}">threshold {threshold:.4g}</text>'
    )
