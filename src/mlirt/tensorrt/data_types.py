"""Element types of tensors by TensorRT's names, and what NumPy calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlirt.tensorrt.enumeration import Enumeration

if TYPE_CHECKING:
    import numpy as np


class DataType(Enumeration):
    """The six types of TensorRT 8.5, and those that only come with ONNX models.

    FP8, BF16 and INT64 have the numbers of later versions. TensorRT has no others: the last ones are mlirt's own.
    """

    FLOAT = 0
    HALF = 1
    INT8 = 2
    INT32 = 3
    BOOL = 4
    UINT8 = 5
    FP8 = 6
    BF16 = 7
    INT64 = 8
    DOUBLE = 100
    INT16 = 101
    UINT16 = 102
    UINT32 = 103
    UINT64 = 104

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return _BYTES[self]


_NAMES = {
    DataType.FLOAT: "float32",
    DataType.HALF: "float16",
    DataType.INT8: "int8",
    DataType.INT32: "int32",
    DataType.BOOL: "bool",
    DataType.UINT8: "uint8",
    DataType.BF16: "bfloat16",
    DataType.INT64: "int64",
    DataType.FP8: "float8_e4m3fn",
    DataType.DOUBLE: "float64",
    DataType.INT16: "int16",
    DataType.UINT16: "uint16",
    DataType.UINT32: "uint32",
    DataType.UINT64: "uint64",
}
_BYTES = {
    DataType.FLOAT: 4,
    DataType.HALF: 2,
    DataType.INT8: 1,
    DataType.INT32: 4,
    DataType.BOOL: 1,
    DataType.UINT8: 1,
    DataType.BF16: 2,
    DataType.INT64: 8,
    DataType.FP8: 1,
    DataType.DOUBLE: 8,
    DataType.INT16: 2,
    DataType.UINT16: 2,
    DataType.UINT32: 4,
    DataType.UINT64: 8,
}
_TYPES = {name: kind for kind, name in _NAMES.items()}


def numpy_name(dtype: DataType) -> str:
    """The name of NumPy (and ml_dtypes) for an element type."""
    return _NAMES[dtype]


def data_type(name: str) -> DataType:
    """The element type of a NumPy name; raises `TypeError` for one that networks do not have."""
    if name not in _TYPES:
        raise TypeError(f"{name} is no data type of a tensor; expected one of {', '.join(_TYPES)}")
    return _TYPES[name]


def nptype(trt_type: DataType) -> type[np.generic[Any]]:
    """The NumPy type of an element type."""
    import numpy as np

    if trt_type in (DataType.BF16, DataType.FP8):
        import ml_dtypes

        return ml_dtypes.bfloat16 if trt_type is DataType.BF16 else ml_dtypes.float8_e4m3fn
    return np.dtype(_NAMES[trt_type]).type
