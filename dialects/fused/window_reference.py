"""Sliding windows on NumPy arrays whose last window may reach past the padding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

# (window, stride, dilation, (pre padding, post padding)) of one axis.
Steps: TypeAlias = "Sequence[tuple[int, int, int, tuple[int, int]]]"


def slide(x: Array, kind: str, first_axis: int, steps: Steps, lengths: Sequence[int], include_padding: bool) -> Array:
    """Combine each window over the axes from `first_axis` on; `lengths` are those of the output."""
    import numpy as np

    is_float = x.dtype.kind in "fV"
    is_max = kind == "max"
    neutral = (-np.inf if is_float else np.iinfo(x.dtype).min) if is_max else 0
    wide = x.astype(np.float64 if is_float else np.int64) if not (is_max and not is_float) else x
    out = list(x.shape)
    count: Array = np.ones((1,) * x.ndim, np.int64)
    positions: list[Array] = []
    for axis, ((size, stride, dilation, (pre, post)), length) in enumerate(
        zip(steps, lengths, strict=True), first_axis
    ):
        n = x.shape[axis]
        out[axis] = length
        cells = _cells(out[axis], stride, pre, size, dilation)
        positions.append(cells)
        counted = (cells >= -pre) & (cells < n + post) if include_padding else (cells >= 0) & (cells < n)
        count = count * counted.sum(1).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
    total = np.full(out, neutral, wide.dtype)
    for taps in product(*(range(cells.shape[1]) for cells in positions)):
        picked = wide
        for axis, (tap, cells) in enumerate(zip(taps, positions, strict=True), first_axis):
            picked = _take(picked, cells[:, tap], axis, neutral)
        total = np.maximum(total, picked) if is_max else total + picked
    if kind != "average":
        return total
    count = np.maximum(count, 1)
    return total / count if is_float else np.sign(total) * (np.abs(total) // count)


def _cells(positions: int, stride: int, pre: int, size: int, dilation: int) -> Array:
    """The input cell of each tap (columns) of each window (rows)."""
    import numpy as np

    return np.arange(positions)[:, None] * stride - pre + np.arange(size) * dilation


def _take(x: Array, places: Array, axis: int, neutral: float) -> Array:
    """The cells at `places` along an axis, `neutral` where they lie outside."""
    import numpy as np

    n = x.shape[axis]
    inside = ((places >= 0) & (places < n)).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
    if n == 0:
        shape = [len(places) if k == axis else size for k, size in enumerate(x.shape)]
        return np.full(shape, neutral, x.dtype)
    picked = np.take(x, np.clip(places, 0, n - 1), axis)
    return np.where(inside, picked, np.asarray(neutral, x.dtype))
