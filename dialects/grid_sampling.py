"""Sampling of images at positions that a grid gives in [-1, 1]: ONNX's GridSample over any number of axes."""

from __future__ import annotations

from enum import auto
from itertools import product
from typing import TYPE_CHECKING

from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.interpolation import ResizeKind

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class SampleMode(StrEnum):
    """What lies outside the image: zeros, the nearest edge, or its mirror image."""

    FILL = auto()
    CLAMP = auto()
    REFLECT = auto()


def grid_sample(x: Array, grid: Array, kind: ResizeKind, mode: SampleMode, align_corners: bool) -> Array:
    """`x` is N C I.., `grid` is N O.. d with the innermost axis first; gives N C O.."""
    import numpy as np

    lengths = x.shape[2:]
    taps: list[list[tuple[Array, Array]]] = []
    for axis, length in enumerate(lengths):
        taps.append(_taps(grid[..., len(lengths) - 1 - axis], length, kind, mode, align_corners))
    batch = np.expand_dims(np.arange(len(x)), tuple(range(1, len(lengths) + 1)))
    result = np.zeros((*grid.shape[:-1], x.shape[1]), x.dtype)
    for corner in product(*taps):
        weight = np.ones(())
        for _, factor in corner:
            weight = weight * factor
        # Indexing across the channel axis moves it to the end.
        result += x[(batch, slice(None), *(index for index, _ in corner))] * weight[..., None]
    return np.moveaxis(result, -1, 1)


def _taps(
    grid: Array, length: int, kind: ResizeKind, mode: SampleMode, align_corners: bool
) -> list[tuple[Array, Array]]:
    """The neighbours of each position along one axis, as (index, weight)."""
    import numpy as np

    low, high = (0.0, length - 1.0) if align_corners else (-0.5, length - 0.5)
    position = (grid + 1) / 2 * (length - 1) if align_corners else ((grid + 1) * length - 1) / 2
    if kind is ResizeKind.NEAREST:
        position = np.rint(position)
    beyond = (position < low) | (position > high)
    if mode is SampleMode.CLAMP and kind is not ResizeKind.CUBIC:
        position = np.where(beyond, np.clip(position, 0, length - 1), position)
    elif mode is SampleMode.REFLECT:
        position = np.where(beyond, _reflect(position, low, high), position)
    base = np.floor(position)
    weights = _weights(kind, position - base)
    result: list[tuple[Array, Array]] = []
    for offset, weight in weights:
        index = base + offset
        if mode is SampleMode.REFLECT:
            index = np.trunc(_reflect(index, low, high))
        inside = (index >= 0) & (index < length) if mode is SampleMode.FILL else np.ones(index.shape, np.bool_)
        result.append((np.clip(index, 0, length - 1).astype(np.int64), np.where(inside, weight, 0)))
    return result


def _weights(kind: ResizeKind, fraction: Array) -> list[tuple[int, Array]]:
    import numpy as np

    if kind is ResizeKind.NEAREST:
        return [(0, np.ones(fraction.shape))]
    if kind is ResizeKind.LINEAR:
        return [(0, 1 - fraction), (1, fraction)]
    return [(offset, _cubic(np.abs(fraction - offset))) for offset in (-1, 0, 1, 2)]


def _cubic(d: Array) -> Array:
    import numpy as np

    a = -0.75
    return np.where(d <= 1, ((a + 2) * d - (a + 3)) * d * d + 1, (((d - 5) * d + 8) * d - 4) * a)


def _reflect(position: Array, low: float, high: float) -> Array:
    import numpy as np

    span = high - low
    if span <= 0:
        return np.full(position.shape, low)
    folded = np.mod(position - low, 2 * span)
    return low + np.minimum(folded, 2 * span - folded)
