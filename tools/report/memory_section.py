"""Memory over time: how many bytes are in use at each launch, and which part of the arena each buffer takes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mlirt.builder.html_page import html_table
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.shape_binding import ShapeBinding
from mlirt.tools.report.memory_map import bytes_text, memory_map, users_of
from mlirt.tools.report.subject import Subject

_WIDTH, _HEIGHT, _LEFT = 1000, 120, 80


def memory_block(subject: Subject) -> str:
    """The section with the curve, the map and the same as a table."""
    manifest, binding = subject.plan.manifest, subject.binding
    drawing = memory_map(manifest, binding)
    if not drawing:
        body = "<p>The plan needs no memory besides inputs, outputs and weights.</p>"
    else:
        live = live_bytes(manifest, binding)
        peak = max(range(len(live)), key=live.__getitem__)
        layer = escape(manifest.launches[peak].layer)
        body = (
            f"<p>At most {bytes_text(live[peak])} are in use at once, at launch {peak} ({layer}); the arena has "
            f"{bytes_text(binding.arena_bytes)}.</p>{_curve(live)}"
            "<p>The arena: launches from left to right, addresses from the bottom up. Orange buffers have a border of "
            "zeros and share memory only with buffers of the same geometry. Each says more when pointed at.</p>"
            f"{drawing}\n<details><summary>the same as a table</summary>{_buffers(manifest, binding)}</details>"
        )
    return f'<section id="memory" class="far"><h2>Memory</h2>{body}</section>'


def live_bytes(manifest: Manifest, binding: ShapeBinding) -> list[int]:
    """For each launch the bytes of the arena's buffers that are in use."""
    changes = [0] * (len(manifest.launches) + 1)
    for index in binding.offsets:
        buffer = manifest.buffers[index]
        changes[max(buffer.first, 0)] += binding.sizes[index]
        changes[min(buffer.last + 1, len(manifest.launches))] -= binding.sizes[index]
    live: list[int] = []
    for change in changes[:-1]:
        live.append((live[-1] if live else 0) + change)
    return live


def _curve(live: Sequence[int]) -> str:
    most, step = max(max(live), 1), (_WIDTH - _LEFT) / len(live)
    points = [
        f"{_LEFT + (number + side) * step:.1f},{_HEIGHT - 8 - (_HEIGHT - 20) * size / most:.1f}"
        for number, size in enumerate(live)
        for side in (0, 1)
    ]
    return (
        f'<div class="wide"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="bytes in use at each launch">'
        f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{_HEIGHT - 8}" y2="{_HEIGHT - 8}"/>'
        f'<text x="{_LEFT - 6}" y="18" text-anchor="end">{bytes_text(most)}</text>'
        f'<text x="{_LEFT - 6}" y="{_HEIGHT - 6}" text-anchor="end">0</text>'
        f'<path class="live" d="M{" L".join(points)}"/></svg></div>'
    )


def _buffers(manifest: Manifest, binding: ShapeBinding) -> str:
    users = users_of(manifest)
    rows = (
        (
            str(index),
            f"{binding.sizes[index]:,}",
            f"{offset:,}",
            f"{manifest.buffers[index].first} to {manifest.buffers[index].last}",
            escape(", ".join(users[index])),
        )
        for index, offset in sorted(binding.offsets.items())
        if binding.sizes[index]
    )
    return html_table(["#buffer", "#bytes", "#at", "launches", "layers"], rows)
