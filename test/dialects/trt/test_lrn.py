"""Local response normalisation (tensorrt-features.md#1.21)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from trt_layers import onnx_node, random, run

from mlirt.dialects.trt.lrn import LrnOp


def test_recorded_values_1_21() -> None:
    """What TensorRT 8.5 gave: alpha is divided by the window."""
    x = np.array([1, 2, 5], np.float32).reshape(1, 3, 1, 1)
    (y,) = run(LrnOp, [x], window=3, alpha=1.0, beta=1.0, k=1e-4)
    assert_allclose(y.ravel(), [0.59996396, 0.19999799, 0.51723605], rtol=1e-6)


@pytest.mark.parametrize("window", [1, 2, 3, 5, 15])
def test_against_onnxruntime_1_21(window: int) -> None:
    x = random((2, 7, 3, 4))
    (y,) = run(LrnOp, [x], {0: "n,7,h,w"}, window=window, alpha=0.3, beta=0.75, k=1.5)
    if window % 2:  # ONNX Runtime takes odd windows only
        (expected,) = onnx_node("LRN", [x], size=window, alpha=0.3, beta=0.75, bias=1.5)
        assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    else:
        first = x[:, 0] / (1.5 + 0.3 / window * (x[:, 0] ** 2 + x[:, 1] ** 2)) ** 0.75
        assert_allclose(y[:, 0], first, rtol=1e-5)


def test_rank_3_has_its_channels_first() -> None:
    x = random((4, 2, 3))
    (y,) = run(LrnOp, [x], window=3, alpha=0.3, beta=0.75, k=1.5)
    (batched,) = run(LrnOp, [x[None]], window=3, alpha=0.3, beta=0.75, k=1.5)
    assert_allclose(y, batched[0])
