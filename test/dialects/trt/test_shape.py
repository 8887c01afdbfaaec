"""Shapes (tensorrt-features.md#1.36)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from trt_layers import random, run

from mlirt.dialects.trt.shape import ShapeOp


@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 4)], ids=str)
def test_lengths_1_36(shape: tuple[int, ...]) -> None:
    (y,) = run(ShapeOp, [random(shape)])
    assert_array_equal(y, np.array(shape, np.int64))
