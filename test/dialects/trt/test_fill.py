"""Linear fills (tensorrt-features.md#1.11a)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from trt_layers import run

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.trt.fill import FillKind, FillOp

LINSPACE = FillKind.LINSPACE


@pytest.mark.parametrize("dtype", ["float32", "int64", "int32", "float64"])
def test_range_1_11a(dtype: str) -> None:
    start, step = np.array(3, dtype), np.array(-2, dtype)
    (y,) = run(FillOp, [None, start, step], kind=LINSPACE, output_dims=DimsAttr.of([5]))
    assert_array_equal(y, np.array([3, 1, -1, -3, -5], dtype))


def test_one_step_per_axis_1_11a() -> None:
    alpha, beta = np.array(10, np.float32), np.array([1, 0.5, -3], np.float32)
    (y,) = run(FillOp, [None, alpha, beta], kind=LINSPACE, output_dims=DimsAttr.of([2, 3, 4]))
    i, j, k = np.ogrid[:2, :3, :4]
    assert_allclose(y, 10 + i + 0.5 * j - 3 * k)


def test_run_time_shape_1_11a() -> None:
    (y,) = run(FillOp, [np.array([2, 3]), np.array(1.5, np.float16)], kind=LINSPACE)
    assert_array_equal(y, np.full((2, 3), 1.5, np.float16))


def test_zeros_by_default() -> None:
    (y,) = run(FillOp, [None, None, None], kind=LINSPACE, output_dims=DimsAttr.of([3]))
    assert_array_equal(y, np.zeros(3, np.float32))
