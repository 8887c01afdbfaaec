"""Fully connected layers (tensorrt-features.md#1.12)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from trt_layers import random, run

from mlirt.dialects.trt.fully_connected import FullyConnectedOp


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=str)
def test_flattens_the_last_three_axes_1_12(batch: tuple[int, ...]) -> None:
    x, kernel, bias = random((*batch, 3, 4, 5)), random((7, 60), 1), random((7,), 2)
    (y,) = run(FullyConnectedOp, [x, kernel, bias])
    expected = x.reshape(*batch, 60) @ kernel.T + bias
    assert_allclose(y, expected[..., None, None], rtol=1e-4, atol=1e-5)


def test_without_bias() -> None:
    x, kernel = random((3, 1, 1)), random((2, 3), 1)
    (y,) = run(FullyConnectedOp, [x, kernel])
    assert_allclose(y[:, 0, 0], kernel @ x[:, 0, 0], rtol=1e-5)


def test_half_accumulates_in_more_than_half() -> None:
    x, kernel = np.ones((4096, 1, 1), np.float16), np.ones((1, 4096), np.float16)
    (y,) = run(FullyConnectedOp, [x, kernel])
    assert y[0, 0, 0] == 4096


def test_bytes_give_exact_sums() -> None:
    x, kernel, bias = random((2, 3, 4, 5), dtype="uint8"), random((7, 60), 1, "int8"), random((7,), 2, "int32")
    (y,) = run(FullyConnectedOp, [x, kernel, bias])
    expected = x.reshape(2, 60).astype(np.int32) @ kernel.T.astype(np.int32) + bias
    assert_array_equal(y, expected[..., None, None])
