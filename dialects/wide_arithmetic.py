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


def saturated(array: Array, dtype: np.dtype[Any]) -> Array:
    """Floats as integers of a type: truncated toward zero, no further than its limits; not-a-number is 0."""
    import numpy as np

    limits = np.iinfo(dtype)
    whole = np.nan_to_num(np.trunc(array.astype(np.float64)), nan=0.0)
    # The largest number of 64 bits rounds up, past the range: such elements are set directly.
    too_large = whole >= float(limits.max)
    inside = np.where(too_large, 0.0, np.maximum(whole, float(limits.min)))
    return np.where(too_large, dtype.type(limits.max), inside.astype(dtype))


def truncated(array: Array, dtype: np.dtype[Any]) -> Array:
    """Floats as integers wherever a layer converts them: on every target, and where constants are folded.

    They are truncated toward zero and limited to the range of int32, of int64 for uint32, of the type itself where it
    has 64 bits; shorter types keep the low bits, as onnxruntime does. Not-a-number is 0.
    """
    import numpy as np

    if dtype.itemsize == 8:
        return saturated(array, dtype)
    return saturated(array, np.dtype(np.int64 if dtype == np.uint32 else np.int32)).astype(dtype)


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


def truncated_quotient(left: Array, right: Array) -> Array:
    """Quotients of integers, rounded toward zero: 0 where the divisor is 0; the least number by -1 is itself."""
    import numpy as np

    with np.errstate(all="ignore"):
        floor = np.where(right == 0, 0, left // np.where(right == 0, 1, right)).astype(left.dtype)
        remainder = left - floor * right
        return (floor + ((remainder != 0) & (right != 0) & ((left < 0) != (right < 0)))).astype(left.dtype)


def power(base: Array, exponent: Array) -> Array:
    """Powers of floats as C defines them; NumPy takes square roots for some exponents of 0.5."""
    import numpy as np

    result = np.power(base, exponent)
    root = np.where(np.isneginf(base), np.asarray(np.inf, result.dtype), result + np.asarray(0.0, result.dtype))
    return np.where(exponent == 0.5, root, result).astype(result.dtype)


def integer_power(base: Array, exponent: Array) -> Array:
    """Powers of integers modulo 2 to their width; a negative exponent gives 0, unless the base is 1 or -1."""
    import numpy as np

    with np.errstate(all="ignore"):
        base, exponent = np.broadcast_arrays(base, exponent)
        result, square, rest = np.ones_like(base), base, np.maximum(exponent, 0)
        while rest.any():
            result = np.where(rest & 1, result * square, result)
            square, rest = square * square, rest >> 1
        is_unit = (base == 1) | (base + base.dtype.type(1) == 0) & (base.dtype.kind == "i")
        inverse = np.where(is_unit, np.where(exponent & 1, base, 1), 0)
        return np.where(exponent < 0, inverse, result).astype(base.dtype)
