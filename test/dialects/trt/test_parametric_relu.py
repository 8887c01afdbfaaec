"""Rectifiers with learned slopes (tensorrt-features.md#1.23)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from trt_layers import random, run

from mlirt.dialects.trt.parametric_relu import ParametricReluOp


@pytest.mark.parametrize("shapes", [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (1, 3, 1)), ((1, 3, 1), (2, 3, 4))], ids=str)
def test_broadcasts_either_way_1_23(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, slope = random(shapes[0]), random(shapes[1], 1)
    (y,) = run(ParametricReluOp, [x, slope])
    assert_allclose(y, np.where(x >= 0, x, x * slope))


def test_symbols() -> None:
    run(ParametricReluOp, [random((2, 3)), random((1, 3), 1)], {0: "n,c", 1: "1,c"})
