"""The precision in which references compute: float64 and int64, rounded to the element type once at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.tensor_op import Array

_EXACT = 2**53  # float64 holds every integer up to here


def is_float_array(array: Array) -> bool:
    """Whether the elements are floating-point numbers (bfloat16, which NumPy calls void, included)."""
    return array.dtype.kind in "fV"


def widen(array: Array) -> Array:
    """The same numbers as float64, or as 64-bit integers."""
    import numpy as np

    if is_float_array(array):
        return array.astype(np.float64)
    return array if array.dtype == np.uint64 else array.astype(np.int64)


def narrow(array: Array, dtype: np.dtype[Any]) -> Array:
    """Round to the element type; integers wrap around."""
    import numpy as np

    if dtype.kind in "iu" and is_float_array(array):
        array = array.astype(np.int64)
    with np.errstate(over="ignore"):
        return np.asarray(array.astype(dtype))


def widen_factors(left: Array, right: Array, depth: int) -> tuple[Array, Array]:
    """Both sides of a sum of `depth` products in a type that holds the sum: float64 (fast) wherever it is exact."""
    import numpy as np

    if is_float_array(left):
        return left.astype(np.float64), right.astype(np.float64)
    if _bound(left) * _bound(right) * max(depth, 1) < _EXACT:
        return left.astype(np.float64), right.astype(np.float64)
    return left.astype(np.int64), right.astype(np.int64)


def _bound(array: Array) -> int:
    return max(abs(int(array.min())), abs(int(array.max()))) if array.size else 0
