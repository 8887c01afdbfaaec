"""Weights: the numbers that a layer holds, without a shape of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.tensorrt.data_types import DataType, data_type, nptype

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class Weights:
    """An array of numbers, which is not copied, or with a `DataType` none; methods take arrays in their place."""

    def __init__(self, a: Array | DataType = DataType.FLOAT) -> None:
        import numpy as np

        self._array = np.empty(0, nptype(a)) if isinstance(a, DataType) else np.asarray(a)
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


def as_weights(given: Weights | Array | None) -> Weights:
    """Weights as methods take them: an array is some, None is none."""
    if given is None:
        return Weights()
    return given if isinstance(given, Weights) else Weights(given)
