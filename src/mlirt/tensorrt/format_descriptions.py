"""TensorRT's words for the formats of tensors, as engines and logs write them."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.tensor_formats import layout_of
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.run_enums import TensorFormat

_TYPES = {DataType.FLOAT: "FP32", DataType.HALF: "FP16", DataType.INT8: "Int8"}
_LOG_NAMES = {DataType.FLOAT: "Float", DataType.HALF: "Half", DataType.INT8: "Int8", DataType.INT32: "Int32"}
_PADDED = {TensorFormat.HWC8: "Eight", TensorFormat.HWC16: "Sixteen", TensorFormat.DHWC8: "Eight"}
_WIDTHS = {2: "Two", 4: "Four", 16: "Sixteen", 32: "Thirty-two"}
_VOLUMES = {TensorFormat.DHWC8: " with 3 spatial dimensions", TensorFormat.CDHW32: " with 3 spatial dimensions"}


def format_description(format: TensorFormat, dtype: DataType) -> str:
    """What an engine says of the format of an input or output (tensorrt-features.md#5.5)."""
    return f"{_words(format, dtype)} (k{format.name})"


def _words(format: TensorFormat, dtype: DataType) -> str:
    kind, volume = _TYPES.get(dtype, dtype.name), _VOLUMES.get(format, "")
    layout = layout_of(format.name)
    if layout is None:
        kind = "INT8" if dtype is DataType.INT8 else kind
        return f"Row major linear {kind} format"
    if format in _PADDED:
        return f"{_PADDED[format]} channel format where C is padded to a multiple of {layout.lanes}{volume}"
    if layout.channels_last:
        return f"Channel major {kind} format"
    return f"{_WIDTHS[layout.lanes]} wide channel vectorized row major {kind} format{volume}"


def format_in_log(format: TensorFormat, dtype: DataType, shape: Sequence[int]) -> str:
    """`Half(60,1:8,12,3)`: the strides of each dimension in vectors, and behind a colon the elements of a vector
    (tensorrt-features.md#5.6); dimensions that the run decides count as 1.
    """
    layout, lengths = layout_of(format.name), [max(length, 1) for length in shape]
    if layout is None:
        steps = [1] * len(lengths)
        for axis in reversed(range(len(lengths) - 1)):
            steps[axis] = steps[axis + 1] * lengths[axis + 1]
        return f"{_LOG_NAMES.get(dtype, dtype.name.capitalize())}({','.join(map(str, steps))})"
    parts = [str(step) for step in layout.strides(lengths)]
    if layout.lanes > 1:
        parts[layout.axis(len(parts))] += f":{layout.lanes}"
    return f"{_LOG_NAMES.get(dtype, dtype.name.capitalize())}({','.join(parts)})"
