"""Arrays whose elements are `Number`s: what is known of a small tensor before the network runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from mlirt.frontend.importing.dim_numbers import Number, Ratio, from_float

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

# Arrays of objects: each element is a `Number`.
Numbers: TypeAlias = np.ndarray[Any, np.dtype[Any]]

MAX_SIZE = 512
MAX_FORMULA_LENGTH = 500

# Stands for an optional input that is left out, where `None` is one whose elements are unknown.
ABSENT: Numbers = np.empty(0, np.object_)


def as_numbers(array: Array | None) -> Numbers | None:
    """The elements of a small array; `None` for a large one."""
    if array is None or array.size > MAX_SIZE or array.dtype.kind not in "iubf":
        return None
    result = np.empty(array.shape, np.object_)
    for index, element in np.ndenumerate(array):
        result[index] = from_float(float(element)) if array.dtype.kind == "f" else int(element)
    return result


def numbers_from(elements: Sequence[Number]) -> Numbers:
    """A one-dimensional array of numbers."""
    result = np.empty(len(elements), np.object_)
    for k, element in enumerate(elements):
        result[k] = element
    return result


def constant_of(numbers: Numbers, dtype: np.dtype[Any]) -> Array | None:
    """The array where every element is a plain number, else `None`."""
    elements = [element.value if isinstance(element, Ratio) else element for element in numbers.flat]
    if not all(isinstance(element, int | float) for element in elements):
        return None
    return np.array(elements).reshape(numbers.shape).astype(dtype)


def bounded(numbers: Numbers) -> Numbers:
    """The same, where a formula that has grown beyond use counts as unknown."""
    result = numbers.copy()
    for index, element in np.ndenumerate(numbers):
        if not isinstance(element, int) and len(str(element)) > MAX_FORMULA_LENGTH:
            result[index] = None
    return result


def number_array(value: Any) -> Numbers:
    """An object array; NumPy unwraps those without dimensions."""
    if isinstance(value, np.ndarray):
        return np.asarray(value, np.object_)
    result = np.empty((), np.object_)
    result[()] = value
    return result


def plain_integers(value: Numbers | None) -> Array | None:
    """The elements as int64 where all are plain integers."""
    if value is None or not all(isinstance(element, int) for element in value.flat):
        return None
    return value.astype(np.int64)
