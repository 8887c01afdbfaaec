"""Constants (tensorrt-features.md#1.5): the array that comes out is the one that went in."""

from __future__ import annotations

import ml_dtypes
import pytest
from numpy.testing import assert_array_equal
from trt_layers import random

from mlirt.dialects.trt.constant import INLINE_BYTES, ConstantOp
from mlirt.dialects.weights import WeightsAttr, WeightStore

TYPES = [
    "float16",
    "float32",
    "float64",
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


@pytest.mark.parametrize("dtype", [*TYPES, ml_dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 4), (40, 40)])
def test_arrays_come_back_1_5(dtype: str, shape: tuple[int, ...]) -> None:
    array = random(shape, dtype="uint8").astype(dtype)
    store = WeightStore()
    op = ConstantOp.from_array(array, store, "w")
    op.verify()
    found = op.array(store)
    assert found.dtype == array.dtype
    assert_array_equal(found, array)
    assert isinstance(op.value, WeightsAttr) == (array.nbytes > INLINE_BYTES)
