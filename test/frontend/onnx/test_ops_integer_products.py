"""Convolutions and products of quantised tensors against onnxruntime, bit for bit (tensorrt-features.md#10.14: never
silently other).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx_models import Array, assert_agrees, imported_text, numbers, one_node, small_integers

SCALE, ZERO = np.array(0.05, np.float32), np.array(128, np.uint8)
MICROSOFT = "com.microsoft"


def bytes_of(*shape: int, dtype: str = "uint8", seed: int = 0) -> Array:
    low, high = (0, 256) if dtype == "uint8" else (-128, 128)
    return small_integers(*shape, low=low, high=high, dtype=dtype, seed=seed)


def check(op_type: str, arrays: Sequence[Array | None], constants: Sequence[int], domain: str = "", **attributes: Any):
    opset = 17 if domain else 10
    arrays = [array if place in constants else _of_seven_bits(array) for place, array in enumerate(arrays)]
    assert_agrees(*one_node(op_type, arrays, opset, constants, domain=domain, **attributes), rtol=0, atol=0)


def _of_seven_bits(array: Array | None) -> Array | None:
    """Of weights that onnxruntime does not know, its sums of two products saturate on x86 processors without VNNI."""
    return array // np.int8(2) if array is not None and array.dtype == np.int8 else array


@pytest.mark.parametrize("per_kernel", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", ["int8", "uint8"])
def test_quantised_convolution(per_kernel: bool, bias: bool, weights: str) -> None:
    x, kernel = bytes_of(1, 3, 8, 8), bytes_of(4, 3, 3, 3, dtype=weights)
    scales = np.linspace(0.01, 0.02, 4, dtype=np.float32) if per_kernel else np.array(0.015, np.float32)
    zeros = np.full(scales.shape, 0 if weights == "int8" else 128, weights)
    arrays = [x, SCALE, ZERO, kernel, scales, zeros, np.array(0.4, np.float32), np.array(120, np.uint8)]
    extra = [small_integers(4, low=-500, high=500, dtype="int32")] if bias else []
    check("QLinearConv", [*arrays, *extra], range(1, 9), pads=[1, 1, 1, 1])


@pytest.mark.parametrize("constants", [(), range(1, 9)])
def test_quantised_convolution_of_groups(constants: Sequence[int]) -> None:
    x, kernel, bias = bytes_of(2, 4, 9), bytes_of(6, 2, 3, dtype="int8"), small_integers(6, low=-99, dtype="int32")
    zero = np.array(0, np.int8)
    arrays = [x, SCALE, ZERO, kernel, SCALE, zero, np.array(0.7, np.float32), ZERO, bias]
    check("QLinearConv", arrays, constants, pads=[2, 1], strides=[2], group=2)


def test_a_quantised_convolution_is_one_of_int8() -> None:
    x, kernel = bytes_of(1, 3, 8, 8), bytes_of(4, 3, 3, 3, dtype="int8")
    arrays = [x, SCALE, ZERO, kernel, SCALE, np.array(0, np.int8), SCALE, ZERO]
    text = imported_text(one_node("QLinearConv", arrays, 10, range(1, 8), pads=[1, 1, 1, 1])[0])
    assert "padding_value = 128" in text
    assert "(tensor<1x3x8x8xui8>, tensor<4x3x3x3xi8>, tensor<4xi32>) -> tensor<1x4x8x8xi32>" in text


@pytest.mark.parametrize("constants", [(), range(1, 8), range(3, 8)])
@pytest.mark.parametrize("zero", [3, 128, 250])
def test_quantised_product(constants: Sequence[int], zero: int) -> None:
    a, b = bytes_of(3, 8), bytes_of(8, 5, seed=1)
    arrays = [a, SCALE, ZERO, b, SCALE, np.array(zero, np.uint8), np.array(1.0, np.float32), ZERO]
    check("QLinearMatMul", arrays, constants)


def test_quantised_product_of_batches_and_columns() -> None:
    a, b = bytes_of(2, 3, 4, 8), bytes_of(8, 5, dtype="int8", seed=1)
    scales = np.linspace(0.01, 0.05, 5, dtype=np.float32)
    arrays = [a, SCALE, ZERO, b, scales, np.zeros(5, np.int8), np.array(0.8, np.float32), ZERO]
    check("QLinearMatMul", arrays, range(1, 8))


@pytest.mark.parametrize("swapped", [0, 1])
@pytest.mark.parametrize("rounded", [False, True])
def test_quantised_gemm(swapped: int, rounded: bool) -> None:
    a, b = bytes_of(3, 8), bytes_of(*((5, 8) if swapped else (8, 5)), dtype="int8", seed=1)
    zero, bias = np.array(0, np.int8), small_integers(5, low=-999, high=999, dtype="int32")
    arrays: list[Array | None] = [a, SCALE, ZERO, b, SCALE, zero, bias]
    arrays += [np.array(0.9, np.float32), np.array(7, np.uint8)] if rounded else []
    check("QGemm", arrays, range(1, 9), MICROSOFT, transB=swapped)


@pytest.mark.parametrize("depth", [8, 700])
@pytest.mark.parametrize("right", ["int8", "uint8"])
def test_integer_products_are_exact(depth: int, right: str) -> None:
    a, b = bytes_of(3, depth), bytes_of(depth, 5, dtype=right, seed=1)
    zeros: list[Array] = [np.array(7, np.uint8), np.array(3, right)]
    for constants in ((), (1, 3), (1, 2, 3)):
        check("MatMulInteger", [a, b, *zeros], constants)
    check("MatMulInteger", [a, b, zeros[0], np.arange(5).astype(right)], (1, 3))


@pytest.mark.parametrize(("left", "right"), [((8,), (8, 5)), ((3, 8), (8,)), ((8,), (8,)), ((2, 3, 8), (2, 8, 4))])
def test_integer_products_of_vectors_and_batches(left: Sequence[int], right: Sequence[int]) -> None:
    check("MatMulInteger", [bytes_of(*left), bytes_of(*right, dtype="int8"), np.array(9, np.uint8)], (1,))


@pytest.mark.parametrize("kernel", ["int8", "uint8"])
def test_integer_convolution(kernel: str) -> None:
    x, weights = bytes_of(1, 3, 6, 6), bytes_of(4, 3, 3, 3, dtype=kernel)
    for constants in ((), (1,), (1, 2)):
        check("ConvInteger", [x, weights, np.array(9, np.uint8)], constants, pads=[1, 0, 2, 1])


@pytest.mark.parametrize(("groups", "channels", "kernels"), [(1, 24, 40), (8, 8, 8), (2, 8, 8)])
def test_zero_points_that_leave_the_range_of_signed_int8(groups: int, channels: int, kernels: int) -> None:
    x, weights = bytes_of(1, channels, 9, 11), bytes_of(kernels, channels // groups, 3, 3)
    zeros = [np.array(7, np.uint8), np.array(178, np.uint8)]
    for constants in ((1, 3), (1, 2, 3)):
        check("ConvInteger", [x, weights, *zeros], constants, pads=[1, 1, 0, 1], group=groups)


def test_zero_points_of_the_run_keep_bytes() -> None:
    """As after DynamicQuantizeLinear, whose zero point only the run knows."""
    x, weights = bytes_of(1, 3, 6, 6), bytes_of(4, 3, 3, 3, dtype="int8")
    model, _ = one_node("ConvInteger", [x, weights, np.array(9, np.uint8)], 10, (1,), pads=[1, 0, 2, 1])
    assert "(tensor<1x3x9x7xui8>, tensor<4x3x3x3xi8>) -> tensor<1x4x7x5xi32>" in imported_text(model)


@pytest.mark.parametrize("right", ["int8", "uint8"])
@pytest.mark.parametrize("columns", [False, True])
def test_integer_product_to_float(right: str, columns: bool) -> None:
    a, b, bias = bytes_of(3, 8), bytes_of(8, 5, dtype=right), numbers(5)
    scale, zero = (np.linspace(0.1, 0.2, 5, dtype=np.float32), np.arange(5)) if columns else (SCALE, np.array(5))
    arrays = [a, b, SCALE, scale, np.array(3, np.uint8), zero.astype(right), bias]
    model, feeds = one_node("MatMulIntegerToFloat", arrays, 17, (1, 3, 5, 6), domain=MICROSOFT)
    assert_agrees(model, feeds, rtol=1e-6, atol=1e-5)


def test_dynamically_quantised_product() -> None:
    arrays = [numbers(3, 8), bytes_of(8, 5, dtype="int8"), np.array(0.02, np.float32), np.array(0, np.int8), numbers(5)]
    model, feeds = one_node("DynamicQuantizeMatMul", arrays, 17, (1, 2, 3, 4), domain=MICROSOFT)
    assert_agrees(model, feeds, rtol=1e-6, atol=1e-5)
