"""Indices of what is not zero (tensorrt-features.md#1.45)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from trt_layers import onnx_node, random, run

from mlirt.dialects.trt.non_zero import NonZeroOp


@pytest.mark.parametrize("dtype", ["bool", "float32", "int64"])
@pytest.mark.parametrize("shape", [(6,), (3, 4), (2, 3, 4)], ids=str)
def test_row_major_1_45(dtype: str, shape: tuple[int, ...]) -> None:
    x = (random(shape) > 0.5).astype(dtype)
    (y,) = run(NonZeroOp, [x])
    assert_array_equal(y, onnx_node("NonZero", [x])[0])


def test_nothing_found_1_45() -> None:
    assert run(NonZeroOp, [np.zeros((2, 3), np.float32)])[0].shape == (2, 0)
