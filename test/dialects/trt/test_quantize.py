"""Quantisation (tensorrt-features.md#1.8, 1.27): the reference against ONNX Runtime and exact ties."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from trt_layers import onnx_node, random, run

from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp


def test_ties_go_to_even_and_the_ends_saturate_1_27() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, np.inf, -np.inf], np.float32)
    (y,) = run(QuantizeOp, [x, np.array(1, np.float32)], {0: "n"})
    assert y.tolist() == [0, 2, 2, 0, -2, 127, -128, 127, -128]


@settings(max_examples=100, deadline=None)
@given(st.integers(-300, 300), st.integers(-5, 5), st.integers(-128, 127))
def test_powers_of_two_are_exact_1_27(eighths: int, exponent: int, zero: int) -> None:
    scale = 2.0**exponent
    x = np.array([eighths / 8 * scale], np.float32)
    (y,) = run(QuantizeOp, [x, np.array(scale, np.float32), np.array(zero, np.int8)])
    assert y[0] == min(max(round(Fraction(eighths, 8)) + zero, -128), 127)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_against_onnxruntime(dtype: str, axis: int | None) -> None:
    x = 40 * random((3, 4))
    shape = () if axis is None else (x.shape[axis],)
    scale, zero = np.asarray(np.abs(random(shape, 1)) + np.float32(0.1)), random(shape, 2, dtype)
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    (q,) = onnx_node("QuantizeLinear", [x, scale, zero], **attributes)
    (found,) = run(QuantizeOp, [x, scale, zero], **attributes)
    assert_array_equal(found, q)
    (back,) = onnx_node("DequantizeLinear", [q, scale, zero], **attributes)
    (restored,) = run(DequantizeOp, [q, scale, zero], {0: "n,c"}, **attributes)
    assert_allclose(restored, back, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_dequantizes_to_the_type_of_the_scale_1_8(dtype: str) -> None:
    q, scale = np.array([-128, 0, 127], np.int8), np.array(0.5, dtype)
    (x,) = run(DequantizeOp, [q, scale])
    assert x.dtype == np.dtype(dtype)
    assert x.tolist() == [-64, 0, 63.5]


def test_accumulators_dequantize() -> None:
    (x,) = run(DequantizeOp, [np.array([100000, -3], np.int32), np.array([0.5, 2], np.float32)], axis=0)
    assert x.tolist() == [50000, -6]
