"""TensorRT's words for formats (tensorrt-features.md#5.5 and 5.6)."""

from __future__ import annotations

import pytest

import mlirt as trt
from mlirt.tensorrt.format_descriptions import format_description, format_in_log

FORMAT = trt.TensorFormat


@pytest.mark.parametrize(
    ("format", "dtype", "text"),
    [
        (FORMAT.LINEAR, trt.float32, "Row major linear FP32 format (kLINEAR)"),
        (FORMAT.LINEAR, trt.int32, "Row major linear INT32 format (kLINEAR)"),
        (FORMAT.LINEAR, trt.int8, "Row major linear INT8 format (kLINEAR)"),
        (FORMAT.CHW2, trt.float16, "Two wide channel vectorized row major FP16 format (kCHW2)"),
        (FORMAT.CHW4, trt.int8, "Four wide channel vectorized row major Int8 format (kCHW4)"),
        (FORMAT.CHW16, trt.float16, "Sixteen wide channel vectorized row major FP16 format (kCHW16)"),
        (FORMAT.CHW32, trt.int8, "Thirty-two wide channel vectorized row major Int8 format (kCHW32)"),
        (FORMAT.HWC8, trt.float16, "Eight channel format where C is padded to a multiple of 8 (kHWC8)"),
        (FORMAT.HWC, trt.float32, "Channel major FP32 format (kHWC)"),
        (
            FORMAT.CDHW32,
            trt.int8,
            "Thirty-two wide channel vectorized row major Int8 format with 3 spatial dimensions (kCDHW32)",
        ),
    ],
)
def test_words(format: trt.TensorFormat, dtype: trt.DataType, text: str) -> None:
    assert format_description(format, dtype) == text


@pytest.mark.parametrize(
    ("format", "dtype", "shape", "text"),
    [
        (FORMAT.HWC8, trt.float16, (1, 24, 5, 4), "Half(60,1:8,12,3)"),
        (FORMAT.CHW4, trt.int8, (1, 25, 5, 3), "Int8(105,15:4,3,1)"),
        (FORMAT.LINEAR, trt.float32, (1, 3, 5, 4), "Float(60,20,4,1)"),
        (FORMAT.HWC, trt.float32, (-1, 3, 5, 4), "Float(60,1,12,3)"),
        (FORMAT.LINEAR, trt.int32, (), "Int32()"),
    ],
)
def test_strides_in_the_log(format: trt.TensorFormat, dtype: trt.DataType, shape: tuple[int, ...], text: str) -> None:
    assert format_in_log(format, dtype, shape) == text
