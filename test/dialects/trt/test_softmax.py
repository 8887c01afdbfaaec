"""Softmax (tensorrt-features.md#1.39): the reference against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from trt_layers import onnx_node, random, run

from mlirt.dialects.trt.softmax import SoftmaxOp


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("log", [False, True])
def test_against_onnxruntime_1_39(axis: int, log: bool) -> None:
    x = 4 * random((2, 3, 4))
    (expected,) = onnx_node("LogSoftmax" if log else "Softmax", [x], axis=axis)
    (y,) = run(SoftmaxOp, [x], {0: "n,c,w"}, axis=axis, log=log)
    assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_large_numbers_and_masks() -> None:
    x = np.array([[1e30, -np.inf, 1e30], [0, -np.inf, -np.inf]], np.float32)
    (y,) = run(SoftmaxOp, [x], axis=1)
    assert_allclose(y, [[0.5, 0, 0.5], [1, 0, 0]])


def test_half_sums_in_single_1_39() -> None:
    (y,) = run(SoftmaxOp, [np.zeros((5000,), np.float16)], axis=0)
    assert_allclose(y.astype(np.float32), np.float16(1 / 5000))


def test_empty() -> None:
    (y,) = run(SoftmaxOp, [np.zeros((0, 3), np.float32)], axis=0)
    assert y.shape == (0, 3)
