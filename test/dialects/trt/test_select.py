"""Selections (tensorrt-features.md#1.35)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from trt_layers import random, run

from mlirt.dialects.trt.select import SelectOp


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool"])
@pytest.mark.parametrize("shapes", [((4, 3), (4, 3), (4, 3)), ((4, 1), (1, 3), (1, 1)), ((), (), ())], ids=str)
def test_broadcasts_1_35(dtype: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    condition, a, b = random(shapes[0], dtype="bool"), random(shapes[1], 1, dtype), random(shapes[2], 2, dtype)
    (y,) = run(SelectOp, [condition, a, b])
    assert_array_equal(y, np.where(condition, a, b))


def test_symbols() -> None:
    run(SelectOp, [random((4, 1), dtype="bool"), random((1, 3)), random((4, 3))], {0: "n,1", 2: "n,c"})
