"""Writes the HTML page of a calibration: which method fits best, and a picture of every tensor's distribution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import numpy as np

from mlirt.builder.calibration.calibration import Calibration
from mlirt.builder.calibration.comparison import MethodError, compare, recommended
from mlirt.builder.calibration.histogram import Histogram
from mlirt.builder.calibration.histogram_picture import picture
from mlirt.errors import InvalidInputError
from mlirt.passes.quantization.tensor_ranges import LARGEST
from mlirt.runtime.atomic_file import write_atomically

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --kept: #6b9bd2; --clipped: #d9a441; --mark: #c0504d }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1080px; margin: 2em auto; padding: 0 1em }
h1 { margin-bottom: 0 } h2 { margin-top: 1.8em } h3 { margin: 1.4em 0 .2em; font: 600 14px ui-monospace, monospace }
table { border-collapse: collapse } th { text-align: left }
td, th { padding: .25em 1.2em .25em 0; border-bottom: 1px solid var(--line) }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
svg { width: 100%; max-width: 720px; height: auto; display: block } svg text { font-size: 11px; fill: currentColor }
svg line { stroke: var(--line) } svg line.threshold { stroke: var(--mark) }
rect.kept { fill: var(--kept) } rect.clipped { fill: var(--clipped) } p.facts { margin: 0; opacity: .8 }
"""


def write_report(calibration: Calibration, path: Path) -> None:
    """Measure the methods where sample data were kept, and write the page."""
    if not calibration.histograms:
        raise InvalidInputError(
            "this calibration has no histograms to report: it was read from a cache; calibrate "
            "again with mlirt.calibrate"
        )
    errors = [] if calibration.samples is None else compare(calibration, calibration.samples)
    write_atomically(path, [page(calibration, errors).encode()])


def page(calibration: Calibration, errors: Sequence[MethodError]) -> str:
    """The HTML of a calibration."""
    title = f"Calibration: {calibration.algorithm}"
    blocks = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{len(calibration.scales)} tensors. A scale is the threshold divided by 127.</p>",
        *_methods(errors),
        "<h2>Tensors</h2>",
        "<p>How many elements have which magnitude, on a logarithmic scale. What lies beyond the threshold (orange) is "
        "clipped.</p>",
        *(block for name in calibration.scales for block in _tensor(calibration, name)),
    ]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(blocks) + "\n</body></html>\n"


def _methods(errors: Sequence[MethodError]) -> Iterator[str]:
    if not errors:
        return
    rows = "".join(
        f'<tr><td>{one.method}</td><td class="n">{one.error:.3%}</td><td class="n">{one.worst:.3%}</td></tr>'
        for one in sorted(errors, key=lambda one: one.worst)
    )
    yield "<h2>Methods</h2>"
    yield (
        "<p>The outputs of the network on bytes against those in float32, on a few of the samples: the root mean "
        "squared difference over the root mean square, of all samples and of the one that loses most.</p>"
    )
    yield f'<table><tr><th>method</th><th class="n">error</th><th class="n">worst sample</th></tr>{rows}</table>'
    best = recommended(errors)
    yield f"<p>Recommended: <b>{best}</b>, the one of entropy and minmax whose worst sample loses less.</p>"


def _tensor(calibration: Calibration, name: str) -> Iterator[str]:
    histogram, scale = calibration.histograms.get(name), calibration.scales[name]
    yield f"<h3>{escape(name)}</h3>"
    if histogram is None or histogram.is_zero:
        yield '<p class="facts">uniformly zero</p>'
        return
    threshold = scale * LARGEST
    yield (
        f'<p class="facts">scale {scale:.6g}, threshold {threshold:.6g}, largest magnitude {histogram.largest:.6g}, '
        f"{clipped_share(histogram, threshold):.4%} of {histogram.elements} elements clipped</p>"
    )
    yield picture(histogram, threshold)


def clipped_share(histogram: Histogram, threshold: float) -> float:
    """The part of the elements in bins beyond the threshold."""
    ends = np.arange(1, len(histogram.counts) + 1) * histogram.bin_width
    beyond = int(histogram.counts[ends > threshold + histogram.bin_width].sum())
    return beyond / max(histogram.elements, 1)
