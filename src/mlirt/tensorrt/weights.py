"""Weights: the numbers that a layer holds, without a shape of their own."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.tensorrt.data_types import DataType, data_type, nptype

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class Weights:
    """An array of numbers, which is not copied, or with a `DataType` none; methods take arrays in their place.

    A `DataType` with the address of `count` numbers in the host's memory is those; an address of 0 is an error of the
    layer that takes the weights.
    """

    def __init__(self, a: Array | DataType = DataType.FLOAT, ptr: int = 0, count: int = 0) -> None:
        import numpy as np

        self.lacks_values = bool(count and not ptr)
        """Whether there should be numbers and no address of them was given (mlirt's own)."""
        if isinstance(a, DataType):
            self._array = _numbers_at(ptr, count if ptr else 0, np.dtype(nptype(a)))
        else:
            self._array = np.asarray(a)
        self._dtype = data_type(self._array.dtype.name)

    @property
    def dtype(self) -> DataType:
        return self._dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(self._array.size)

    @property
    def nbytes(self) -> int:
        return int(self._array.nbytes)

    def numpy(self) -> Array:
        """The array itself."""
        return self._array

    def __len__(self) -> int:
        return self.size


def _numbers_at(address: int, count: int, dtype: np.dtype[Any]) -> Array:
    import numpy as np

    if not count:
        return np.empty(0, dtype)
    memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
    return np.ctypeslib.as_array(memory).view(dtype)


def as_weights(given: Weights | Array | None) -> Weights:
    """Weights as methods take them: an array is some, None is none."""
    if given is None:
        return Weights()
    return given if isinstance(given, Weights) else Weights(given)
