"""Writes the HTML page of a calibration: which method fits best, and a picture of every tensor's distribution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import numpy as np

from mlirt.atomic_file import write_file
from mlirt.builder.calibration.calibration import Calibration, MethodError
from mlirt.builder.calibration.comparison import compare, recommended
from mlirt.builder.calibration.histogram import Histogram
from mlirt.builder.calibration.histogram_picture import picture
from mlirt.builder.html_page import html_page, html_table
from mlirt.errors import InvalidInputError
from mlirt.passes.quantization.tensor_ranges import MAX_INT8

_STYLE = """
h3 { margin: 1.4em 0 .2em; font: 600 14px ui-monospace, monospace; overflow-wrap: anywhere }
svg { max-width: 720px } svg text { font-size: 11px } svg line.threshold { stroke: var(--mark) }
path.kept { fill: var(--plain) } path.clipped { fill: var(--special) } p.facts { margin: 0; opacity: .8 }
"""


def write_report(calibration: Calibration, path: Path) -> None:
    """Measure the methods where sample data were kept, and write the page."""
    if not calibration.histograms:
        raise InvalidInputError(
            "this calibration has no histograms to report: it was read from a cache; calibrate "
            "again with mlirt.calibrate"
        )
    errors = [] if calibration.samples is None else compare(calibration, calibration.samples)
    write_file(path, [page(calibration, errors).encode()], "the report")


def page(calibration: Calibration, errors: Sequence[MethodError]) -> str:
    """The HTML of a calibration."""
    title = f"Calibration: {calibration.algorithm}"
    blocks = [
        f"<p>{len(calibration.scales)} tensors. A scale is the threshold divided by 127.</p>",
        *_methods(errors),
        "<h2>Tensors</h2>",
        "<p>How many elements have which magnitude, on a logarithmic scale. What lies beyond the threshold (orange) is "
        "clipped.</p>",
        *(block for name in calibration.scales for block in _tensor(calibration, name)),
    ]
    return html_page(title, blocks, _STYLE)


def _methods(errors: Sequence[MethodError]) -> Iterator[str]:
    if not errors:
        return
    rows = [(one.method, f"{one.error:.3%}", f"{one.worst:.3%}") for one in sorted(errors, key=lambda one: one.worst)]
    yield "<h2>Methods</h2>"
    yield (
        "<p>The outputs of the network in int8 against those in float32, on a few of the samples: the root mean "
        "squared difference over the root mean square, of all samples and of the one that loses most.</p>"
    )
    yield html_table(["method", "#error", "#worst sample"], rows)
    best = recommended(errors)
    yield f"<p>Recommended: <b>{best}</b>, the one of entropy and minmax whose worst sample loses less.</p>"


def _tensor(calibration: Calibration, name: str) -> Iterator[str]:
    histogram, scale = calibration.histograms.get(name), calibration.scales[name]
    yield f"<h3>{escape(name)}</h3>"
    if histogram is None or histogram.is_zero:
        yield '<p class="facts">uniformly zero</p>'
        return
    threshold = scale * MAX_INT8
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
