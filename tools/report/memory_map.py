"""Draws which part of the arena each buffer takes, and between which launches: time to the right, addresses upwards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from mlirt.runtime.manifest import BufferArgument, Manifest
from mlirt.runtime.shape_binding import ShapeBinding

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 1000, 360, 80, 24
_TICKS = 4


def memory_map(manifest: Manifest, binding: ShapeBinding) -> str:
    """An SVG; empty where the plan has no arena."""
    if not binding.arena_bytes or not manifest.launches:
        return ""
    steps = len(manifest.launches)
    across, up = (_WIDTH - _LEFT) / steps, (_HEIGHT - _BOTTOM) / binding.arena_bytes
    parts = [f'<div class="wide"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="memory over time">']
    parts += _scale(binding.arena_bytes, steps, across)
    users = users_of(manifest)
    for index, offset in sorted(binding.offsets.items(), key=lambda item: item[1]):
        buffer, size = manifest.buffers[index], binding.sizes[index]
        if not size:
            continue
        x, width = _LEFT + buffer.first * across, (buffer.last - buffer.first + 1) * across
        height = size * up
        y = _HEIGHT - _BOTTOM - offset * up - height
        kind = "halo" if buffer.halo is not None else "plain"
        about = f"buffer {index}: {size:,} bytes at {offset:,}, launches {buffer.first} to {buffer.last}"
        touched = ", ".join(users[index])
        parts.append(
            f'<rect class="{kind}" x="{x:.2f}" y="{y:.2f}" width="{max(width - 1, 0.5):.2f}" '
            f'height="{max(height - 0.5, 0.5):.2f}"><title>{escape(f"{about}; {touched}")}</title></rect>'
        )
        if width > 40 and height > 14:
            parts.append(f'<text class="on" x="{x + 5:.2f}" y="{y + 13:.2f}">{index}</text>')
    return "\n".join([*parts, "</svg></div>"])


def users_of(manifest: Manifest) -> Mapping[int, Sequence[str]]:
    """For each buffer that owns memory the layers whose launches touch it, through views too."""
    found: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for launch in manifest.launches:
        for argument in launch.args:
            if isinstance(argument, BufferArgument):
                found[manifest.roots[argument.buffer]][launch.layer] = None
    return defaultdict(list, {index: list(layers) for index, layers in found.items()})


def _scale(total: int, steps: int, across: float) -> Iterator[str]:
    base = _HEIGHT - _BOTTOM
    for tick in range(_TICKS + 1):
        y = base - base * tick / _TICKS
        yield f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        label = bytes_text(total * tick / _TICKS)
        yield f'<text x="{_LEFT - 6}" y="{max(y + 4, 11):.1f}" text-anchor="end">{label}</text>'
    every = max(1, steps // 20)
    for step in range(0, steps, every):
        if across < 16 and step == steps - 1:
            break  # its number would be cut at the edge
        yield f'<text x="{_LEFT + (step + 0.5) * across:.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{step}</text>'


def bytes_text(size: float) -> str:
    """A size as people read it: 1.5 MiB."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
