"""How far two arrays are apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

INFINITE = float("inf")


def difference(found: Array, expected: Array) -> float:
    """The largest difference, as a share of the largest finite number expected; infinite for other shapes or NaNs."""
    import numpy as np

    if found.shape != expected.shape:
        return INFINITE
    if not found.size:
        return 0.0
    if expected.dtype.kind in "biu":
        return 0.0 if np.array_equal(found, expected) else INFINITE
    a, b = found.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    apart = np.abs(a - b)[~same]
    if not np.isfinite(apart).all():
        return INFINITE
    finite = np.abs(b[np.isfinite(b)])
    scale = float(finite.max()) if finite.size else 0.0
    return float(apart.max()) / scale if scale else INFINITE


def worst(found: Mapping[str, Array], expected: Mapping[str, Array]) -> tuple[str, float]:
    """The name and the difference of the array that is furthest off."""
    pairs = [(name, difference(found[name], array) if name in found else INFINITE) for name, array in expected.items()]
    return max(pairs, key=lambda pair: pair[1], default=("", 0.0))
