"""Elements of one tensor: from JSON or bytes to an array, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any, cast

import numpy as np

from mlirt.errors import InvalidInputError
from mlirt.runtime.data_types import numpy_dtype
from mlirt.serve.protocol.json_fields import shown

Array = np.ndarray[Any, np.dtype[Any]]


def from_json(name: str, data: object, dtype: str, shape: Sequence[int]) -> Array:
    """An array of numbers that are listed in one row, or nested as the shape is."""
    numbers = _flat(name, data, shape)
    if len(numbers) != math.prod(shape):
        raise InvalidInputError(
            f"input {name!r} has {len(numbers)} elements; expected {math.prod(shape)} for shape {list(shape)}"
        )
    _check_kinds(name, set(map(type, numbers)), dtype)
    target = numpy_dtype(dtype)
    try:
        if target.kind in "iub":
            wide = np.array(numbers, np.uint64 if target == np.uint64 else np.int64)
        else:
            wide = np.array(numbers, np.float64)
        with np.errstate(over="ignore"):
            found = wide.astype(target)
    except (OverflowError, ValueError, TypeError) as error:
        raise InvalidInputError(f"input {name!r} has elements that are no {dtype}: {error}") from None
    is_kept = found.astype(wide.dtype) == wide if target.kind in "iub" else np.isfinite(found) | ~np.isfinite(wide)
    if not is_kept.all():
        value = wide[int(np.argmin(is_kept))]
        raise InvalidInputError(f"input {name!r} has the element {value}; expected what {dtype} can hold")
    return found.reshape(tuple(shape))


def from_bytes(name: str, data: memoryview, dtype: str, shape: Sequence[int]) -> Array:
    """An array of little-endian elements in row-major order; it may lie in `data`."""
    target = numpy_dtype(dtype)
    expected = math.prod(shape) * target.itemsize
    if len(data) != expected:
        raise InvalidInputError(
            f"input {name!r} has {len(data)} bytes of data; expected {expected} for {dtype} {list(shape)}"
        )
    if dtype == "bool":
        return (np.frombuffer(data, np.uint8) != 0).reshape(tuple(shape))
    return np.frombuffer(data, target).reshape(tuple(shape))


def to_json(array: Array) -> list[Any]:
    """All elements in one row."""
    plain = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
    return cast("list[Any]", plain.ravel().tolist())


def to_bytes(array: Array) -> bytes:
    """All elements in row-major order."""
    return array.tobytes()


def _flat(name: str, data: object, shape: Sequence[int]) -> list[Any]:
    """The elements in one row; lists in lists must be nested as the shape is."""
    level = _as_list(name, data)
    if not level or type(level[0]) is not list:
        return level
    for axis, length in enumerate(shape[1:], 1):
        if set(map(type, level)) - {list} or set(map(len, level)) - {length}:
            raise InvalidInputError(f"data of input {name!r} is not nested as its shape {list(shape)}, on axis {axis}")
        level = list(chain.from_iterable(level))
    return level


def _as_list(name: str, data: object) -> list[Any]:
    if not isinstance(data, list):
        raise InvalidInputError(f"data of input {name!r} is {shown(data)}; expected a list of numbers")
    return cast("list[Any]", data)


def _check_kinds(name: str, kinds: set[type], dtype: str) -> None:
    allowed: tuple[type, ...] = (bool,) if dtype == "bool" else (int,)
    if dtype.startswith(("float", "bfloat")):
        allowed = (int, float)
    wrong = kinds.difference(allowed)
    if wrong:
        names = {bool: "true or false", str: "a text", type(None): "null", list: "a list", dict: "an object"}
        found = next(names.get(kind, f"a {kind.__name__}") for kind in wrong)
        raise InvalidInputError(f"data of input {name!r} has {found} among its elements; expected {dtype}")
