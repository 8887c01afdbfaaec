"""One-hot encoding (tensorrt-features.md#1.46): the reference against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from trt_layers import onnx_node, run

from mlirt.dialects.trt.one_hot import OneHotOp


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_against_onnxruntime_1_46(axis: int) -> None:
    indices, values, depth = np.array([[0, 3, -1], [-4, 2, 9]]), np.array([-1, 5], np.float32), np.array(4)
    (expected,) = onnx_node("OneHot", [indices, depth, values], axis=axis)
    (y,) = run(OneHotOp, [indices, values, depth], {0: "n,m"}, axis=axis)
    assert_array_equal(y, expected)
