"""When two boxes are so much the same that one of them hides the other."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.kernels.lib.language import Value, kernel


@kernel
def overlaps(a: Sequence[Value], b: Sequence[Value], threshold: Value) -> bool:
    """Whether the common area, divided by the area of both together, is larger than the threshold."""
    width, height = [max(min(a[axis + 2], b[axis + 2]) - max(a[axis], b[axis]), 0.0) for axis in (0, 1)]
    common = width * height
    exceeds = common / (_area(a) + _area(b) - common) > threshold
    return common > 0.0 and exceeds


@kernel
def _area(box: Sequence[Value]) -> Value:
    return (box[2] - box[0]) * (box[3] - box[1])
