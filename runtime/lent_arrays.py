"""Tensors of other libraries as arrays, by the shortest way that their type has: runs of small networks take 4 us."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Lent = tuple[np.ndarray, int | None]
"""An array, and the address of its first byte where that is known: NumPy takes 1.5 us to tell it of a new array."""

_NUMBERS = "float64 float32 float16 int64 int32 int16 int8 uint8 bool".split()
_REFUSED = (AttributeError, BufferError, RuntimeError, TypeError, ValueError)
_ways: dict[type[Any], Callable[[Any], Lent]] = {}
_tensors: set[object] = set()
_dtypes: dict[object, np.dtype[np.generic]] = {}


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


def address_in_place(value: object, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> int | None:
    """The address of the first byte of a PyTorch tensor that lies as an array of this type and shape does, dense and
    with its elements as they are, in the host's memory. None for all else, also where it needs gradients.

    No array is made: that takes as long as all else that a small run does with an input.
    """
    if type(value) not in _tensors and not _is_tensor(type(value)):
        return None
    tensor: Any = value
    try:
        of = tensor.dtype
        fits = (_dtypes.get(of) or _dtype_of(of)) is dtype and tensor.shape == shape and tensor.is_contiguous()
        if not fits or not tensor.is_cpu or tensor.requires_grad or tensor.is_neg():
            return None
        return tensor.data_ptr() or None
    except _REFUSED:
        return None


def _is_tensor(kind: object) -> bool:
    """PyTorch's own type: elements of a subclass may be elsewhere."""
    is_one = isinstance(kind, type) and kind.__module__ == "torch" and kind.__name__ == "Tensor"
    if is_one:
        _tensors.add(kind)
    return is_one


def _dtype_of(of: object) -> np.dtype[np.generic] | None:
    """NumPy's type for PyTorch's; None where there is none."""
    name = str(of).removeprefix("torch.")
    if name not in _NUMBERS:
        return None
    return _dtypes.setdefault(of, np.dtype(name))


def _way(kind: type[Any]) -> Callable[[Any], Lent]:
    is_torch = any(one.__module__ == "torch" and one.__name__ == "Tensor" for one in kind.__mro__)
    _ways[kind] = _of_pytorch if is_torch else _of_others
    return _ways[kind]


def _of_pytorch(tensor: Any) -> Lent:
    """`Tensor.numpy` never copies, refuses what `__dlpack__` refuses, and takes a third of its time."""
    return tensor.numpy(), tensor.data_ptr()


def _of_others(tensor: Any) -> Lent:
    return np.from_dlpack(tensor), None
