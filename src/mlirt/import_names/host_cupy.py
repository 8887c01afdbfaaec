"""What scripts use of `cupy` to hold an engine's inputs and outputs, as NumPy arrays with `.data.ptr`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy import bool_, float16, float32, float64, int8, int32, int64, uint8

__all__ = [
    "Stream", "arange", "array", "asarray", "ascontiguousarray", "asnumpy", "bool_", "cuda", "empty", "float16",
    "float32", "float64", "full", "int8", "int32", "int64", "ndarray", "ones", "uint8", "zeros",
]  # fmt: skip


class _Pointer:
    """An address, as `cupy.ndarray.data` has it."""

    def __init__(self, address: int) -> None:
        self.ptr = address

    def __int__(self) -> int:
        return self.ptr


class ndarray(np.ndarray[Any, np.dtype[Any]]):
    """A NumPy array with CuPy's `get`, `set` and `data.ptr`."""

    @property
    def data(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return _Pointer(self.ctypes.data)

    def get(self, stream: object = None, out: Any = None) -> np.ndarray[Any, np.dtype[Any]]:
        """A copy as an array of NumPy's."""
        if out is None:
            return np.array(self)
        np.copyto(out, self)
        return out

    def set(self, arr: Any, stream: object = None) -> None:
        """Take over an array's numbers; raises `ValueError` for another shape."""
        np.copyto(self, arr)


class Stream:
    """An order of work in which nothing ever waits."""

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        self.ptr = 0

    def synchronize(self) -> None:
        """Return: all is done."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is to be given back."""


class _Device:
    """The host in the place of a device."""

    def __init__(self, number: int = 0) -> None:
        self.id = number

    def synchronize(self) -> None:
        """Return: all is done."""

    def use(self) -> None:
        """Nothing: there is one."""


class cuda:
    """`cupy.cuda`."""

    Stream = Stream
    Device = _Device


def asnumpy(a: Any, stream: object = None) -> np.ndarray[Any, np.dtype[Any]]:
    return np.array(a)


def _made_by(function: Any) -> Any:
    def make(*args: Any, **keywords: Any) -> ndarray:
        return function(*args, **keywords).view(ndarray)

    return make


empty, zeros, ones, full = (_made_by(one) for one in (np.empty, np.zeros, np.ones, np.full))
array, arange = _made_by(np.array), _made_by(np.arange)
asarray, ascontiguousarray = _made_by(np.asarray), _made_by(np.ascontiguousarray)
