"""Tensors of other libraries as arrays, by the shortest way that their type has: runs of small networks take 4 us."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np

Lent = tuple[np.ndarray, int | None]
"""An array, and the address of its first byte where that is known: NumPy takes 1.5 us to tell it of a new array."""

_NUMBERS = "float64 float32 float16 int64 int32 int16 int8 uint8 bool".split()
_REFUSED = (AttributeError, BufferError, RuntimeError, TypeError, ValueError)
_ways: dict[type[Any], Callable[[Any], Lent]] = {}


def lent_array(value: Any) -> np.ndarray | None:
    """A tensor on the host as an array in its memory, which the array keeps; None where NumPy cannot have it so.

    That is so for other devices, for element types that NumPy has not, and for what a library does not lend.
    """
    lent = lent_with_address(value)
    return None if lent is None else lent[0]


def lent_with_address(value: object) -> Lent | None:
    """The same with the address."""
    try:
        return (_ways.get(type(value)) or _way(type(value)))(value)
    except _REFUSED:
        return None


def address_in_place(value: Any, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> int | None:
    """The address of the first byte of a PyTorch tensor that lies as an array of this type and shape does, dense and
    with its elements as they are, in the host's memory. None for all else, also where it needs gradients.

    No array is made: that takes as long as all else that a small run does with an input.
    """
    if not _is_tensor(cast("type[Any]", type(value))):
        return None
    try:
        fits = value.shape == shape and _dtype_of(value.dtype) is dtype and value.is_contiguous() and value.is_cpu
        return (value.data_ptr() or None) if fits and not value.requires_grad and not value.is_neg() else None
    except _REFUSED:
        return None


@cache
def _is_tensor(kind: type[Any]) -> bool:
    """PyTorch's own type: elements of a subclass may be elsewhere."""
    return kind.__module__ == "torch" and kind.__name__ == "Tensor"


@cache
def _dtype_of(of: object) -> np.dtype[np.generic] | None:
    """NumPy's type for PyTorch's; None where there is none."""
    name = str(of).removeprefix("torch.")
    return np.dtype(name) if name in _NUMBERS else None


def _way(kind: type[Any]) -> Callable[[Any], Lent]:
    is_torch = any(one.__module__ == "torch" and one.__name__ == "Tensor" for one in kind.__mro__)
    _ways[kind] = _of_pytorch if is_torch else _of_others
    return _ways[kind]


def _of_pytorch(tensor: Any) -> Lent:
    """`Tensor.numpy` never copies, refuses what `__dlpack__` refuses, and takes a third of its time."""
    return tensor.numpy(), tensor.data_ptr()


def _of_others(tensor: Any) -> Lent:
    return np.from_dlpack(tensor), None
