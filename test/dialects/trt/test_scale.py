"""Scales (tensorrt-features.md#1.33): (x * scale + shift) ** power in its three modes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from trt_layers import Array, random, run

from mlirt.dialects.trt.scale import ScaleMode, ScaleOp

SHAPES = {ScaleMode.UNIFORM: (), ScaleMode.CHANNEL: (3,), ScaleMode.ELEMENTWISE: (3, 4, 5)}
LAID_OUT = {ScaleMode.UNIFORM: (), ScaleMode.CHANNEL: (3, 1, 1), ScaleMode.ELEMENTWISE: (3, 4, 5)}


@pytest.mark.parametrize("mode", list(ScaleMode))
@pytest.mark.parametrize("given", [(1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)], ids=str)
def test_modes_and_defaults_1_33(mode: ScaleMode, given: tuple[int, int, int]) -> None:
    x = np.abs(random((2, 3, 4, 5))) + 1
    shift, scale, power = (
        np.abs(random(SHAPES[mode], seed)) if present else None for seed, present in enumerate(given, 1)
    )
    (y,) = run(ScaleOp, [x, shift, scale, power], {0: "n,3,4,5"}, mode=mode)

    def laid_out(coefficient: Array | None, default: float) -> Array:
        return np.array(default) if coefficient is None else coefficient.reshape(LAID_OUT[mode]).astype(np.float64)

    expected = (x * laid_out(scale, 1) + laid_out(shift, 0)) ** laid_out(power, 1)
    assert_allclose(y, expected, rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_channel_axis(axis: int) -> None:
    x, scale = random((2, 3, 4)), random(((2, 3, 4)[axis],), 1)
    (y,) = run(ScaleOp, [x, None, scale], channel_axis=axis)
    assert_allclose(y, x * scale.reshape([-1 if k == axis else 1 for k in range(3)]), rtol=1e-6)


def test_scalars() -> None:
    (y,) = run(ScaleOp, [np.array(3, np.float32), None, np.array(2, np.float32)], mode=ScaleMode.UNIFORM)
    assert_array_equal(y, np.float32(6))
