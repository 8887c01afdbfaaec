"""Constants in half precision: what is out of range, what vanishes, and what they lose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Attribute

from mlirt.counted_warnings import warn
from mlirt.dialects.tensor_types import numpy_dtype

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

# The largest finite and the smallest positive number.
_RANGE = {"float16": (65504.0, 2.0**-24), "bfloat16": (float.fromhex("0x1.fep127"), 2.0**-133)}

_MIN_NORMAL = {"float16": 2.0**-14, "bfloat16": 2.0**-126}

# Rounding takes at most half of this from a normal number; constants that lose more lie where the format gets coarse.
_RELATIVE_STEP = {"float16": 2.0**-10, "bfloat16": 2.0**-7}

_PART = 1 << 16  # elements that are read at once


def converted(array: Array, element: Attribute, layer: str) -> Array:
    """An array in another format; warns where numbers are clamped to the range of half precision."""
    import numpy as np

    target = numpy_dtype(element)
    if target.name not in _RANGE:
        return array.astype(target)
    largest, smallest = _RANGE[target.name]
    beyond = np.isfinite(array) & (np.abs(array) > largest)
    if beyond.any():
        text = f"layer {layer}: {int(beyond.sum())} of {array.size} constants are beyond the range of {target.name}"
        warn(f"{text}; they become {largest:g} in magnitude", stacklevel=2)
        array = np.where(beyond, np.copysign(array.dtype.type(largest), array), array)
    with np.errstate(over="ignore", under="ignore"):
        result = array.astype(target)
    if array.size == 1 and np.all(array != 0) and np.all(result.astype(array.dtype) == 0):
        result = np.copysign(np.full(array.shape, smallest, array.dtype), array).astype(target)
    return result


def is_exact(array: Array, element: Attribute) -> bool:
    """Whether the format holds each of the numbers as it is."""
    import numpy as np

    with np.errstate(over="ignore", under="ignore"):
        return bool(np.array_equal(array.astype(numpy_dtype(element)).astype(array.dtype), array, equal_nan=True))


def in_range(array: Array, element: Attribute) -> bool:
    """Whether no finite number is beyond the largest one of the format."""
    import numpy as np

    largest, _ = _RANGE[numpy_dtype(element).name]
    return not np.any(np.isfinite(array) & (np.abs(array) > largest))


def is_tiny(numbers: Array | float, element: Attribute) -> bool:
    """Whether numbers are all positive and below the normal ones of the format."""
    import numpy as np

    array = np.asarray(numbers)
    return bool(array.size and np.all((array > 0) & (array < _MIN_NORMAL[numpy_dtype(element).name])))


def loses_weight(array: Array, element: Attribute) -> bool:
    """Whether weights overflow in the format, or are so small all together that it holds them only coarsely.

    They are read in parts, in double precision, so that large ones take little memory beside themselves.
    """
    import numpy as np

    if not in_range(array, element):
        return True
    dtype, flat = numpy_dtype(element), array.reshape(-1)
    lost = whole = 0.0
    for begin in range(0, flat.size, _PART):
        part = flat[begin : begin + _PART]
        exact = part[np.isfinite(part)].astype(np.float64)
        with np.errstate(under="ignore"):
            difference = exact - exact.astype(dtype).astype(np.float64)
        lost += float(difference @ difference)
        whole += float(exact @ exact)
    return lost > _RELATIVE_STEP[dtype.name] ** 2 * whole
