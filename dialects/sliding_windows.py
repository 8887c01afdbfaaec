"""Sliding windows over arrays of N x C x spatial: correlation, its transpose, and reductions, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.tensor_op import Array

# The matrix of windows of one step stays below this size, so that large batches do not fill the memory.
_STEP_BYTES = 1 << 28
_MANY_POSITIONS = 64


def fold_batch(x: Array, kept: int) -> Array:
    """Join all axes but the last `kept` ones into one."""
    return x.reshape(prod(x.shape[: x.ndim - kept]), *x.shape[x.ndim - kept :])


def padded(x: Array, padding: Sequence[tuple[int, int]], value: float = 0) -> Array:
    """Put `padding` cells of `value` around the last axes; negative padding crops."""
    import numpy as np

    lead = [(0, 0)] * (x.ndim - len(padding))
    widths = [*lead, *((max(pre, 0), max(post, 0)) for pre, post in padding)]
    grown = np.pad(x, widths, constant_values=value) if any(map(any, widths)) else x
    crop = [
        slice(max(-pre, 0), size - max(-post, 0))
        for (pre, post), size in zip(padding, grown.shape[len(lead) :], strict=True)
    ]
    return grown[(..., *crop)]


def windows_of(x: Array, sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """All windows over the last axes as a view: `x.shape[:-d] + output lengths + sizes`."""
    import numpy as np

    rank = len(sizes)
    axes = tuple(range(x.ndim - rank, x.ndim))
    extents = [1 + d * (k - 1) for k, d in zip(sizes, dilations, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(x, extents, axes)
    starts = [slice(None, None, step) for step in strides]
    cells = [slice(None, None, step) for step in dilations]
    return view[(..., *starts, *cells)]


def correlate(x: Array, kernel: Array, strides: Sequence[int], dilations: Sequence[int], groups: int) -> Array:
    """Cross-correlation of a padded `x` (N C I..) with `kernel` (K C/groups R..): N K O.."""
    import numpy as np

    view = windows_of(x, kernel.shape[2:], strides, dilations)
    if groups > 1 and kernel.shape[1] == 1:
        return _correlate_depthwise(view, kernel)
    if groups > 1:
        parts = zip(np.split(view, groups, axis=1), np.split(kernel, groups), strict=True)
        return np.concatenate([_correlate_dense(part, weights) for part, weights in parts], axis=1)
    return _correlate_dense(view, kernel)


def _correlate_dense(view: Array, kernel: Array) -> Array:
    import numpy as np

    rank = kernel.ndim - 2
    spatial = view.shape[2 : 2 + rank]
    out = np.empty((view.shape[0], kernel.shape[0], *spatial), view.dtype)
    step = max(1, _STEP_BYTES // max(1, view[:1].size * view.itemsize))
    reduced = [1, *range(2 + rank, 2 + 2 * rank)]
    for start in range(0, view.shape[0], step):
        part = np.tensordot(kernel, view[start : start + step], (list(range(1, kernel.ndim)), reduced))
        out[start : start + step] = np.moveaxis(part, 0, 1)
    return out


def _correlate_depthwise(view: Array, kernel: Array) -> Array:
    import numpy as np

    rank = kernel.ndim - 2
    batch, channels = view.shape[:2]
    spatial = view.shape[2 : 2 + rank]
    weights = kernel.reshape(channels, -1, *([1] * rank), *kernel.shape[2:])
    out = np.zeros((batch, channels, weights.shape[1], *spatial), view.dtype)
    for cell in product(*map(range, kernel.shape[2:])):
        out += view[(slice(None), slice(None), None, ..., *cell)] * weights[(..., *cell)]
    return out.reshape(batch, kernel.shape[0], *spatial)


def correlate_transposed(
    x: Array, kernel: Array, strides: Sequence[int], dilations: Sequence[int], groups: int
) -> Array:
    """The transpose of `correlate`: `x` (N C I..) with `kernel` (C K/groups R..) gives N K O.. without pads."""
    import numpy as np

    parts = zip(np.split(x, groups, axis=1), np.split(kernel, groups), strict=True)
    return np.concatenate([_spread(part, weights, strides, dilations) for part, weights in parts], axis=1)


def _spread(x: Array, kernel: Array, strides: Sequence[int], dilations: Sequence[int]) -> Array:
    import numpy as np

    sizes, lengths = kernel.shape[2:], x.shape[2:]
    full = [
        max((length - 1) * s + 1 + d * (k - 1), 0)
        for length, k, s, d in zip(lengths, sizes, strides, dilations, strict=True)
    ]
    out = np.zeros((x.shape[0], kernel.shape[1], *full), x.dtype)
    for cell in product(*map(range, sizes)):
        place = [
            slice(r * d, r * d + max(length - 1, 0) * s + 1 if length else r * d, s)
            for r, d, s, length in zip(cell, dilations, strides, lengths, strict=True)
        ]
        out[(..., *place)] += np.moveaxis(np.tensordot(kernel[(..., *cell)], x, ([0], [1])), 0, 1)
    return out


def reduce_windows(view: Array, rank: int, combine: np.ufunc) -> Array:
    """Combine the cells of each window, given the view that `windows_of` makes, with `np.add` or `np.maximum`."""

    sizes = view.shape[-rank:]
    if prod(sizes) > _MANY_POSITIONS:
        return combine.reduce(view, axis=tuple(range(-rank, 0)))
    cells = [view[(..., *cell)] for cell in product(*map(range, sizes))]
    result = cells[0].copy()
    for cell in cells[1:]:
        result = combine(result, cell)
    return result
