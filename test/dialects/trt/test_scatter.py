"""Scatters (tensorrt-features.md#1.34a, 1.34b): the reference against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from trt_layers import onnx_node, random, run

from mlirt.dialects.indexing import ScatterMode, ScatterReduction
from mlirt.dialects.trt.scatter import ScatterOp


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reduction", list(ScatterReduction))
def test_element_1_34a(axis: int, reduction: ScatterReduction) -> None:
    x, updates = random((4, 5)), random((3, 2), 1)
    # Without a reduction, two updates of one element would leave the result open.
    indices = np.array([[0, 1], [-2, 3], [1, 2]]) if reduction is ScatterReduction.NONE else np.array([[1, 1]] * 3)
    (expected,) = onnx_node("ScatterElements", [x, indices, updates], opset=18, axis=axis, reduction=reduction.value)
    (y,) = run(ScatterOp, [x, indices, updates], {0: "n,c"}, axis=axis, reduction=reduction)
    assert_allclose(y, expected, rtol=1e-6)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("reduction", list(ScatterReduction))
def test_nd_1_34b(depth: int, reduction: ScatterReduction) -> None:
    x = random((3, 4, 5))
    indices = np.array([[0, 1, 2], [2, 3, -1], [-2, 0, 0]])[:, :depth]
    updates = random((3, *x.shape[depth:]), 1)
    (expected,) = onnx_node("ScatterND", [x, indices, updates], opset=18, reduction=reduction.value)
    (y,) = run(ScatterOp, [x, indices, updates], mode=ScatterMode.ND, reduction=reduction)
    assert_allclose(y, expected, rtol=1e-6)


@pytest.mark.parametrize("mode", list(ScatterMode))
def test_data_stays_and_invalid_indices_write_nothing(mode: ScatterMode) -> None:
    x, updates, indices = np.zeros((3,), np.int32), np.array([1, 2, 3], np.int32), np.array([-1, 3, -4])
    (y,) = run(ScatterOp, [x, indices[:, None] if mode is ScatterMode.ND else indices, updates], mode=mode)
    assert_array_equal(y, [0, 0, 1])
    assert not x.any()
