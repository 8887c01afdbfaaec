"""Whether float32 numbers are those of half precision, so that half the bytes hold them to the bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_SAMPLE = 1 << 12  # elements that tell most weights from halves
_CHUNK = 1 << 20  # elements that are converted at a time


def are_halves(array: Array) -> bool:
    """Whether all numbers of a float32 array are halves, to the bit."""
    flat = array.reshape(-1)
    return _as_halves(flat[:_SAMPLE]) and all(
        _as_halves(flat[start : start + _CHUNK]) for start in range(0, flat.size, _CHUNK)
    )


def _as_halves(array: Array) -> bool:
    import numpy as np

    with np.errstate(over="ignore", under="ignore"):
        again = array.astype(np.float16).astype(np.float32)
    return np.array_equal(again.view(np.uint32), np.ascontiguousarray(array).view(np.uint32))
