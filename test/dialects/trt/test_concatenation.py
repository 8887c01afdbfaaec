"""Concatenation (tensorrt-features.md#1.3): the reference against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from trt_layers import random, run

from mlirt.dialects.trt.concatenation import ConcatenationOp


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("lengths", [(2,), (1, 2, 3), (0, 2), (0, 0)], ids=str)
def test_parts_1_3(axis: int, lengths: tuple[int, ...]) -> None:
    parts = [random([length if k == axis else 4 for k in range(3)], seed) for seed, length in enumerate(lengths)]
    (y,) = run(ConcatenationOp, parts, axis=axis)
    assert_array_equal(y, np.concatenate(parts, axis))


def test_symbolic_lengths_add_up_1_3() -> None:
    run(ConcatenationOp, [random((2, 3)), random((5, 3)), random((1, 3))], {0: "n,3", 1: "m,c", 2: "1,c"}, axis=0)


@pytest.mark.parametrize("dtype", ["bool", "int64", "float16", "uint8"])
def test_element_types(dtype: str) -> None:
    parts = [random((2,), seed, dtype) for seed in range(2)]
    (y,) = run(ConcatenationOp, parts, axis=0)
    assert_array_equal(y, np.concatenate(parts))
