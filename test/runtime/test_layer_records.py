"""Formats of tensors in the inspector's JSON: TensorRT's words where it has any for a type and an order."""

from __future__ import annotations

from typing import Any

import pytest

from mlirt.runtime.layer_records import inspected_layer


def told_format(kind: str, order: str, shape: list[int]) -> object:
    tensor = {"name": "x", "dtype": kind, "format": order, "shape": shape}
    layer: Any = inspected_layer({"name": "a", "inputs": [tensor]}, "detailed")
    return layer["Inputs"][0]["Format/Datatype"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("float32", "Channel major FP32 format"),
        ("float16", "Channel major FP16 format where channel % 8 == 0"),
        ("int8", "Channel major Int8 format"),
        ("int32", "Int32"),
        ("uint8", "Uint8"),
    ],
)
def test_channels_last_has_words_for_the_types_that_tensorrt_has_so(kind: str, expected: str) -> None:
    """tensorrt-features.md#5.5: sums of bytes lie here with channels last too, which no format of TensorRT's does."""
    assert told_format(kind, "channels last", [1, 64, 8, 8]) == expected


def test_row_major_tensors_have_words_of_their_own() -> None:
    words = [told_format(kind, "row major linear", [4]) for kind in ("float32", "int32", "bool")]
    assert words == ["Row major linear FP32", "Row major linear Int32", "Row major linear BOOL"]
