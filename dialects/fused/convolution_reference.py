"""Convolution and its transpose on NumPy arrays, any rank, accumulated in double precision or int64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

# (stride, dilation, pre padding, post padding) of one spatial dimension.
Spatial = Sequence[tuple[int, int, int, int]]


def convolve(x: Array, kernel: Array, spatial: Spatial, groups: int, padding_value: int = 0) -> Array:
    """Cross-correlation of `[n, c, ..]` with `[k, c / groups, ..]`; negative padding crops."""
    import numpy as np

    wide = np.float64 if x.dtype.kind in "fV" else np.int64
    x, kernel = _pad(x.astype(wide), spatial, padding_value), kernel.astype(wide)
    window = kernel.shape[2:]
    out = [(x.shape[2 + i] - d * (window[i] - 1) - 1) // s + 1 for i, (s, d, _, _) in enumerate(spatial)]
    result = np.zeros((x.shape[0], groups, kernel.shape[0] // groups, *out), wide)
    x = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    kernel = kernel.reshape(groups, kernel.shape[0] // groups, *kernel.shape[1:])
    for tap in np.ndindex(*window):
        cut = tuple(
            slice(t * d, t * d + max((o - 1) * s + 1, 0), s)
            for t, o, (s, d, _, _) in zip(tap, out, spatial, strict=True)
        )
        result += np.einsum(
            "ngc...,gkc->ngk...", x[(..., *cut)], kernel[(slice(None), slice(None), slice(None), *tap)], optimize=True
        )
    return result.reshape(x.shape[0], groups * kernel.shape[1], *out)


def convolve_transposed(x: Array, kernel: Array, spatial: Spatial, groups: int, out: Sequence[int]) -> Array:
    """The transpose of `convolve`: `[n, c, ..]` with `[c, k / groups, ..]` to spatial lengths `out`."""
    import numpy as np

    wide = np.float64 if x.dtype.kind in "fV" else np.int64
    x, kernel = x.astype(wide), kernel.astype(wide)
    window, batch, lengths = kernel.shape[2:], x.shape[0], x.shape[2:]
    x = x.reshape(batch, groups, x.shape[1] // groups, *lengths)
    kernel = kernel.reshape(groups, kernel.shape[0] // groups, *kernel.shape[1:])
    front = [max(0, -pre) for _, _, pre, _ in spatial]
    full = [
        more + max((n - 1) * s + d * (w - 1) + 1, o + p)
        for more, n, w, o, (s, d, p, _) in zip(front, lengths, window, out, spatial, strict=True)
    ]
    result = np.zeros((batch, groups, kernel.shape[2], *full), wide)
    for tap in np.ndindex(*window):
        put = tuple(
            slice(more + t * d, more + t * d + (n - 1) * s + 1, s)
            for more, t, n, (s, d, _, _) in zip(front, tap, lengths, spatial, strict=True)
        )
        result[(..., *put)] += np.einsum(
            "ngc...,gck->ngk...", x, kernel[(slice(None), slice(None), slice(None), *tap)], optimize=True
        )
    crop = tuple(slice(more + p, more + p + o) for more, o, (_, _, p, _) in zip(front, out, spatial, strict=True))
    return result.reshape(batch, groups * kernel.shape[2], *full)[(..., *crop)]


def _pad(x: Array, spatial: Spatial, value: int) -> Array:
    import numpy as np

    for axis, (_, _, pre, post) in enumerate(spatial, start=2):
        cut = slice(max(0, -pre), x.shape[axis] - max(0, -post))
        x = x[(slice(None),) * axis + (cut,)]
    widths = [(0, 0), (0, 0), *((max(0, pre), max(0, post)) for _, _, pre, post in spatial)]
    return np.pad(x, widths, constant_values=value)
