"""The calibrated tensors: their ranges, what int8 loses of each, and a picture of its distribution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from mlirt.builder.calibration.histogram_picture import picture
from mlirt.builder.calibration.report import clipped_share
from mlirt.builder.html_page import html_table
from mlirt.passes.quantization.tensor_ranges import MAX_INT8

if TYPE_CHECKING:
    from mlirt.builder.calibration.calibration import Calibration

_PICTURES = 300


def tensor_blocks(calibration: Calibration, errors: Mapping[str, float]) -> list[str]:
    """A table of the tensors and their pictures; none for a network whose scales come from itself or from a cache."""
    if not calibration.histograms:
        return []
    heads = ["tensor", "#range", "#largest magnitude", "#clipped", *(["#error in int8"] if errors else [])]
    blocks = [
        f"<h3>Tensors</h3><p>Calibrated by {escape(calibration.algorithm)}; {escape(calibration.loss)}.</p>",
        html_table(heads, _rows(calibration, errors)),
    ]
    pictures = list(_pictures(calibration, errors))
    if pictures:
        blocks.append(
            "<p>How many elements have which magnitude, on a logarithmic scale. What lies beyond the threshold is "
            f'clipped.</p><div class="histograms">{"".join(pictures)}</div>'
        )
    return blocks


def _rows(calibration: Calibration, errors: Mapping[str, float]) -> Iterator[Sequence[str]]:
    for name, reach in calibration.ranges.items():
        histogram = calibration.histograms.get(name)
        counted = ["", ""]
        if histogram is not None and histogram.elements:
            counted = [f"{histogram.largest:.4g}", f"{clipped_share(histogram, reach):.3%}"]
        error = [f"{errors[name]:.3%}" if name in errors else ""] if errors else []
        yield f"<code>{escape(name)}</code>", f"{reach:.4g}", *counted, *error


def _pictures(calibration: Calibration, errors: Mapping[str, float]) -> Iterator[str]:
    """Those that lose most first."""
    drawn = [name for name, one in calibration.histograms.items() if one.elements and not one.is_zero]
    drawn = [name for name in drawn if calibration.scales.get(name)]
    for name in sorted(drawn, key=lambda name: -errors.get(name, 0.0))[:_PICTURES]:
        drawing = picture(calibration.histograms[name], calibration.scales[name] * MAX_INT8)
        yield f"<figure><figcaption>{escape(name)}</figcaption>{drawing}</figure>"
