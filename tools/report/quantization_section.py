"""What a network in int8 looks like: which launches read and write bytes, why others do not, and the scales."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import cast

from mlirt.builder.html_page import html_table
from mlirt.tools.report.launch_section import link
from mlirt.tools.report.subject import Subject

_BYTES = ("int8", "uint8", "float8_e4m3fn", "float8_e5m2")


def quantization_block(subject: Subject) -> str:
    """The section; empty for a network that nothing is quantised in."""
    rows = list(_launches(subject))
    scales = subject.build.scales if subject.build else ()
    tensors = _tensors(subject)
    if not rows and not scales and not tensors:
        return ""
    count = sum(bool(row[2]) for row in rows)
    launches = len(subject.plan.manifest.launches)
    parts = [
        '<section id="quantisation" class="far"><h2>Quantisation</h2>'
        f"<p>{count} of {launches} launches read or write 8-bit tensors.</p>"
    ]
    if rows:
        parts.append(html_table(["launch", "layer", "8-bit tensors", "what became of it"], rows))
    if scales:
        cells = [
            (
                escape(one.layer),
                one.op,
                escape(one.type),
                str(one.scales),
                f"{one.least:.6g}",
                f"{one.largest:.6g}",
                f"{one.largest_number:.4g}",
                escape(one.zero_points),
            )
            for one in scales
        ]
        heads = ["layer", "op", "integers", "#scales", "#least", "#largest", "#largest number", "zero point"]
        parts.append(f"<h3>Scales</h3>{html_table(heads, cells)}")
    return "\n".join([*parts, *tensors, "</section>"])


def _tensors(subject: Subject) -> Sequence[str]:
    """The calibrated tensors of an engine that was built for the page."""
    if subject.build is None or subject.build.calibration is None:
        return []
    from mlirt.tools.report.tensor_ranges import tensor_blocks

    return tensor_blocks(subject.build.calibration, subject.build.errors)


def _launches(subject: Subject) -> Iterator[Sequence[str]]:
    manifest = subject.plan.manifest
    for number, (launch, work) in enumerate(zip(manifest.launches, subject.works, strict=True)):
        sides = (("reads", work.inputs), ("weights", work.weights), ("writes", work.outputs))
        narrow = [f"{word} {one.dtype}" for word, tensors in sides for one in tensors if one.dtype in _BYTES]
        notes = quantization_notes(subject, number)
        if narrow or notes:
            yield (
                link(str(number), f"launch-{number}"),
                escape(launch.layer),
                escape(", ".join(dict.fromkeys(narrow))),
                _folded(notes),
            )


def _folded(notes: Sequence[str]) -> str:
    text = "<br>".join(escape(note) for note in notes)
    return text if len(notes) < 3 else f"<details><summary>{len(notes)} notes</summary>{text}</details>"


def quantization_notes(subject: Subject, launch: int) -> list[str]:
    """What the passes noted on the layers of a launch around which the network quantises."""
    layers = subject.plan.manifest.layers
    notes = layers[launch].get("quantization") if launch < len(layers) else None
    return [str(note) for note in cast("list[object]", notes)] if isinstance(notes, list) else []
