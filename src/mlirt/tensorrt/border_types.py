"""The types that inputs and outputs of ONNX models have in TensorRT, which lacks some of ONNX's."""

from __future__ import annotations

from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.limits import limits_count
from mlirt.tensorrt.reported_version import reports_at_least


def border_type(dtype: DataType) -> DataType:
    """The type at the border for one in the model: FLOAT for DOUBLE, and INT32 for INT64 before version 10.

    Types stay as they are where its limits do not count: mlirt has them all.
    """
    if not limits_count():
        return dtype
    if dtype is DataType.DOUBLE:
        return DataType.FLOAT
    return DataType.INT32 if dtype is DataType.INT64 and not reports_at_least(10) else dtype
