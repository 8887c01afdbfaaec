"""The parameters that a creator makes a plugin from (tensorrt-features.md#19.3, 19.4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.enumeration import Enumeration

if TYPE_CHECKING:
    import numpy as np

    Data: TypeAlias = "np.ndarray[Any, np.dtype[Any]] | bytes | Dims"


class PluginFieldType(Enumeration):
    """The types that the elements of a field may have; the last three have the numbers of later versions."""

    FLOAT16 = 0
    FLOAT32 = 1
    FLOAT64 = 2
    INT8 = 3
    INT16 = 4
    INT32 = 5
    CHAR = 6
    DIMS = 7
    UNKNOWN = 8
    BF16 = 9
    INT64 = 10
    FP8 = 11


class PluginField:
    """A parameter by name. It holds its data, so that they live as long; text is data as bytes, of type CHAR."""

    def __init__(self, name: str = "", data: Any = None, type: PluginFieldType = PluginFieldType.UNKNOWN) -> None:
        self.name = name
        self.type = PluginFieldType(type)
        self.data = data

    @property
    def data(self) -> Data | None:
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        import numpy as np

        if data is None or isinstance(data, bytes | Dims):
            self._data = data
        elif isinstance(data, str | bytearray):
            self._data = data.encode() if isinstance(data, str) else bytes(data)
        else:
            self._data: Data | None = np.asarray(data)

    @property
    def size(self) -> int:
        """The number of elements."""
        if self._data is None:
            return 0
        return len(self._data) if isinstance(self._data, bytes | Dims) else int(self._data.size)

    def __repr__(self) -> str:
        return f"<PluginField {self.name!r}: {self.size} x {self.type.name}>"


class PluginFieldCollection(list[PluginField]):
    """Fields in order."""

    def __init__(self, fields: Iterable[PluginField] = ()) -> None:
        super().__init__()
        self.extend(fields)

    def append(self, field: PluginField, /) -> None:
        super().append(_checked(field))

    def insert(self, index: SupportsIndex, field: PluginField, /) -> None:
        super().insert(index, _checked(field))

    def extend(self, fields: Iterable[PluginField], /) -> None:
        super().extend([_checked(field) for field in fields])


# What creators are handed: the collection without its right to change.
PluginFieldCollection_ = PluginFieldCollection


def _checked(field: object) -> PluginField:
    if not isinstance(field, PluginField):
        raise TypeError(f"a collection holds PluginField, not {field!r}")
    return field
