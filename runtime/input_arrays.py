"""Arrays of the caller that a run reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirt.errors import InvalidInputError
from mlirt.runtime.joined_arrays import JoinedArrays
from mlirt.runtime.tensor_exchange import host_array, is_exchangeable


def checked_input(name: str, value: Any, dtype: np.dtype[np.generic], *, is_joined: bool) -> np.ndarray | JoinedArrays:
    """`checked_array`, but for arrays of the right type that a device joins: they stay apart."""
    if type(value) is JoinedArrays and is_joined and value.dtype == dtype:
        return value
    return checked_array(name, value, dtype)


def checked_array(name: str, value: Any, dtype: np.dtype[np.generic]) -> np.ndarray:
    """An input as a contiguous array; InvalidInputError where it is none, or has another type."""
    if type(value) is np.ndarray and value.dtype is dtype and value.flags.c_contiguous:
        return value
    if is_exchangeable(value):
        value = host_array(f"input {name!r}", value)
    try:
        array: np.ndarray = np.asarray(value)
    except ValueError as error:
        raise InvalidInputError(f"input {name!r}: expected an array of {dtype}, got what is none: {error}") from error
    if array.dtype.kind in "OUS":
        raise InvalidInputError(f"input {name!r}: expected an array of {dtype}, got {type(value).__name__}")
    if array.dtype != dtype:
        is_array = hasattr(value, "astype")
        way = f".astype({dtype.name!r})" if is_array else f"numpy.asarray(value, {dtype.name!r})"
        raise InvalidInputError(f"input {name!r}: expected data type {dtype}, got {array.dtype}; convert it with {way}")
    return array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(array.shape)
