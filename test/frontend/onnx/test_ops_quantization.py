"""Quantised networks against onnxruntime, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import assert_agrees, imported_text, numbers, one_node, run_onnxruntime, run_reference, small_integers

from mlirt.errors import InvalidModelError

SCALE, ZERO = np.array(0.05, np.float32), np.array(128, np.uint8)


@pytest.mark.parametrize("zero", [ZERO, np.array(3, np.int8), None])
def test_quantize_and_dequantize(zero: np.ndarray | None) -> None:  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]
    arrays = [numbers(3, 4) * 4, SCALE, zero]
    assert_agrees(*one_node("QuantizeLinear", arrays, 13, (1, 2)), rtol=0, atol=0)
    kind = "uint8" if zero is None else zero.dtype.name
    integers = small_integers(3, 4, low=0, high=120, dtype=kind)
    assert_agrees(*one_node("DequantizeLinear", [integers, SCALE, zero], 13, (1, 2)), rtol=0, atol=0)


def test_one_scale_per_channel() -> None:
    """tensorrt-features.md#10.21: the attribute `axis` of opset 13."""
    scales = np.array([0.1, 0.2, 0.3], np.float32)
    model, feeds = one_node("QuantizeLinear", [numbers(2, 3, 4), scales, np.zeros(3, np.int8)], 13, (1, 2), axis=1)
    assert "axis = 1 : i64" in imported_text(model)
    assert_agrees(model, feeds, rtol=0, atol=0)


def test_one_scale_for_all() -> None:
    """tensorrt-features.md#10.21: opset 10 has no other."""
    arrays = [numbers(3, 4), SCALE, np.array(3, np.int8)]
    assert_agrees(*one_node("QuantizeLinear", arrays, 10, (1, 2)), rtol=0, atol=0)


@pytest.mark.parametrize("number", [0.0, -0.05, float("nan"), float("inf")])
def test_scales_that_are_no_positive_numbers(number: float) -> None:
    """tensorrt-features.md#10.5: the layer is named, and its scale."""
    arrays = [numbers(3, 4), np.array(number, np.float32), np.array(3, np.int8)]
    model, _ = one_node("QuantizeLinear", arrays, 13, (1, 2))
    with pytest.raises(InvalidModelError, match=r"node.*: expected scales greater than 0, but .* holds"):
        imported_text(model)


def test_weights_of_zeros_may_have_the_scale_0() -> None:
    arrays = [np.zeros((3, 4), np.int8), np.array([0.0, 0.5, 0.0], np.float32), np.zeros(3, np.int8)]
    assert_agrees(*one_node("DequantizeLinear", arrays, 13, (1, 2), axis=0), rtol=0, atol=0)
    arrays[1][0] = -1
    with pytest.raises(InvalidModelError, match=r"expected scales greater than 0, but .* holds -1\.0"):
        imported_text(one_node("DequantizeLinear", arrays, 13, (1, 2), axis=0)[0])


def test_quantisation_is_not_folded_away() -> None:
    model, _ = one_node("DequantizeLinear", [small_integers(3, 4, dtype="int8"), SCALE], 13, (0, 1))
    assert "trt.dequantize" in imported_text(model)


def test_dynamic_quantisation() -> None:
    model, feeds = one_node("DynamicQuantizeLinear", [numbers(3, 4) + 0.3], 11, outputs=3)
    for got, want in zip(run_reference(model, feeds), run_onnxruntime(model, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul"])
def test_quantised_pairs(op_type: str) -> None:
    a, b = small_integers(3, 4, high=256, dtype="uint8"), small_integers(4, high=256, dtype="uint8", seed=1)
    arrays = [a, SCALE, ZERO, b, SCALE, ZERO, np.array(0.5, np.float32), ZERO]
    assert_agrees(*one_node(op_type, arrays, 17, range(1, 8), domain="com.microsoft"), rtol=0, atol=1)
