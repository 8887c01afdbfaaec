"""Dimensions behave like TensorRT's (tensorrt-features.md#2.10)."""

from __future__ import annotations

import numpy as np
import pytest

import mlirt as trt


def test_printing_and_equality() -> None:
    dims = trt.Dims([1, 3, 4, 5])
    assert str(dims) == "(1, 3, 4, 5)"
    assert dims == (1, 3, 4, 5) == trt.Dims4(1, 3, 4, 5)
    assert dims == [1, 3, 4, 5]
    assert dims != (1, 3, 4)
    assert dims[1:] == (3, 4, 5)


def test_items_can_be_set() -> None:
    dims = trt.Dims3(1, 2, 3)
    dims[0] = 7
    assert tuple(dims) == (7, 2, 3)
    assert np.zeros(dims).shape == (7, 2, 3)


def test_height_and_width() -> None:
    size = trt.DimsHW(5, 6)
    size.w = 8
    assert (size.h, size.w) == (5, 8)
    assert trt.DimsHW([1, 2]) == (1, 2)


def test_at_most_eight() -> None:
    """tensorrt-features.md#1.48."""
    assert trt.Dims.MAX_DIMS == 8
    with pytest.raises(ValueError, match="at most 8"):
        trt.Dims(range(9))
    with pytest.raises(ValueError, match="expected 3"):
        trt.Dims3(1, 2)
