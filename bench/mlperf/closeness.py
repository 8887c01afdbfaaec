"""How far the answers of a sample are from the right ones, as a number from 0 on: 0 is the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Closeness = Callable[[Mapping[str, Array], Mapping[str, Array]], float]
_SAME_BOX = 0.9
_SAME_SCORE = 0.05


def of_numbers(found: Mapping[str, Array], right: Mapping[str, Array]) -> float:
    """The root mean squared difference over the root mean square, of the output where that is most."""
    return max(_relative(found[name], array) for name, array in right.items())


def _relative(found: Array, right: Array) -> float:
    if found.shape != right.shape:
        return float("inf")
    wide = right.astype(np.float64)
    scale = float(np.sqrt(np.square(wide).mean()))
    return float(np.sqrt(np.square(found.astype(np.float64) - wide).mean())) / max(scale, 1e-12)


def of_boxes(found: Mapping[str, Array], right: Mapping[str, Array]) -> float:
    """The share of detections that only one side has: the same class, nearly the same box and score is the same one."""
    (ours,), (theirs,) = found.values(), right.values()
    mine, other = (rows[rows[:, 4] > 0] for rows in (ours, theirs))
    if not np.isfinite(ours).all():
        return float("inf")
    if not len(mine) or not len(other):
        return float(len(mine) != len(other))
    pairs = _overlap(mine, other) >= _SAME_BOX
    pairs &= mine[:, None, 5] == other[None, :, 5]
    pairs &= np.abs(mine[:, None, 4] - other[None, :, 4]) <= _SAME_SCORE
    return 1.0 - float(min(pairs.any(1).mean(), pairs.any(0).mean()))


def _overlap(one: Array, other: Array) -> Array:
    """Intersection over union of each box with each: [m, 4 or more], [n, ..] to [m, n]."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:4], other[None, :, 2:4])
    common = np.clip(high - low, 0, None).prod(2)
    areas = [(rows[:, 2:4] - rows[:, :2]).prod(1) for rows in (one, other)]
    return common / np.maximum(areas[0][:, None] + areas[1][None] - common, 1e-9)
