"""Running sums and products: the reference against ONNX Runtime's CumSum and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from trt_layers import onnx_node, random, run

from mlirt.dialects.running_totals import CumulativeKind
from mlirt.dialects.trt.cumulative import CumulativeOp


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_sum_against_onnxruntime(axis: int, exclusive: bool, reverse: bool, dtype: str) -> None:
    x = random((3, 4), dtype=dtype)
    flags = {"exclusive": int(exclusive), "reverse": int(reverse)}
    (expected,) = onnx_node("CumSum", [x, np.array(axis)], **flags)
    (y,) = run(CumulativeOp, [x], {0: "n,c"}, kind=CumulativeKind.SUM, axis=axis, exclusive=exclusive, reverse=reverse)
    assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_product() -> None:
    x = np.array([2, 3, 4], np.int32)
    assert run(CumulativeOp, [x], kind=CumulativeKind.PROD, axis=0)[0].tolist() == [2, 6, 24]
    (y,) = run(CumulativeOp, [x], kind=CumulativeKind.PROD, axis=0, exclusive=True, reverse=True)
    assert y.tolist() == [12, 4, 1]


def test_empty_axis() -> None:
    (y,) = run(CumulativeOp, [np.zeros((2, 0), np.float32)], kind=CumulativeKind.SUM, axis=1, exclusive=True)
    assert y.shape == (2, 0)
