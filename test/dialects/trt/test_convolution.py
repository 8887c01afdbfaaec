"""Convolution (tensorrt-features.md#1.6a-1.6g): the reference against ONNX Runtime and against sums written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from trt_layers import Array, layer, onnx_node, random, run

from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.window_arithmetic import PaddingMode


def by_hand(x: Array, kernel: Array, stride: int, dilation: int, pre: int, post: int, groups: int) -> Array:
    """A 1-D convolution as its definition says, element by element."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pre, post)))
    kernels, depth, size = kernel.shape
    length = (padded.shape[2] - 1 - dilation * (size - 1)) // stride + 1
    y = np.zeros((x.shape[0], kernels, length))
    for n, k, p, c, r in np.ndindex(x.shape[0], kernels, length, depth, size):
        channel = k // (kernels // groups) * depth + c
        y[n, k, p] += padded[n, channel, p * stride + r * dilation] * kernel[k, c, r]
    return y


@settings(max_examples=40, deadline=None)
@given(
    batch=st.integers(0, 2),
    groups=st.integers(1, 3),
    depth=st.integers(1, 2),
    per_group=st.integers(1, 2),
    size=st.integers(1, 3),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 2),
    pads=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    length=st.integers(5, 9),
)
def test_definition_1_6a(
    batch: int,
    groups: int,
    depth: int,
    per_group: int,
    size: int,
    stride: int,
    dilation: int,
    pads: tuple[int, int],
    length: int,
) -> None:
    x, kernel = random((batch, groups * depth, length)), random((groups * per_group, depth, size), 1)
    (y,) = run(
        ConvolutionOp,
        [x, kernel],
        {0: f"n,{groups * depth},w"},
        stride=[stride],
        dilation=[dilation],
        pre_padding=[pads[0]],
        post_padding=[pads[1]],
        num_groups=groups,
    )
    assert_allclose(y, by_hand(x, kernel, stride, dilation, *pads, groups), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("spatial", [(9,), (9, 7), (5, 6, 7)], ids=["1d", "2d_1_6a", "3d_1_6b"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_against_onnxruntime(spatial: tuple[int, ...], groups: int) -> None:
    rank = len(spatial)
    x, kernel, bias = random((2, 4, *spatial)), random((8, 4 // groups, *[3] * rank), 1), random((8,), 2)
    steps, pads = [2, 1, 1][:rank], [1, 0, 2][:rank]
    (expected,) = onnx_node("Conv", [x, kernel, bias], strides=steps, pads=[*pads, *pads[::-1]], group=groups)
    (y,) = run(
        ConvolutionOp,
        [x, kernel, bias],
        stride=steps,
        pre_padding=pads,
        post_padding=pads[::-1],
        num_groups=groups,
    )
    assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_leading_axes_fold_into_the_batch_1_6c() -> None:
    x, kernel = random((2, 3, 4, 6, 6)), random((5, 4, 3, 3), 1)
    (y,) = run(ConvolutionOp, [x, kernel])
    (flat,) = run(ConvolutionOp, [x.reshape(6, 4, 6, 6), kernel])
    assert_array_equal(y, flat.reshape(2, 3, 5, 4, 4))


def test_zero_channels_give_the_bias_1_6d() -> None:
    x, kernel, bias = np.zeros((2, 0, 5, 5), np.float32), np.zeros((3, 0, 2, 2), np.float32), random((3,))
    (y,) = run(ConvolutionOp, [x, kernel, bias])
    assert_array_equal(y, np.broadcast_to(bias.reshape(1, 3, 1, 1), (2, 3, 4, 4)))
    (zeros,) = run(ConvolutionOp, [x, kernel])
    assert not zeros.any()


@pytest.mark.parametrize("mode", list(PaddingMode))
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_padding_modes_1_6g(mode: PaddingMode, stride: int) -> None:
    x, kernel = random((1, 2, 10)), random((3, 2, 4), 1)
    (y,) = run(
        ConvolutionOp,
        [x, kernel],
        {0: "n,2,w"},
        stride=[stride],
        pre_padding=[2],
        post_padding=[1],
        padding_mode=mode,
    )
    total = max((-(-10 // stride) - 1) * stride + 4 - 10, 0)
    pads = {"explicit": (2, 1), "caffe": (2, 2), "same": (total // 2, total - total // 2)}[mode.split("_")[0]]
    pre, post = pads[::-1] if mode is PaddingMode.SAME_LOWER else pads
    if mode.endswith("round_up"):
        post += -(10 + pre + post - 4) % stride
    assert_allclose(y, by_hand(x, kernel, stride, 1, pre, post, 1), rtol=1e-5, atol=1e-6)


def test_same_upper_against_onnxruntime_1_6g() -> None:
    x, kernel = random((1, 2, 10, 11)), random((3, 2, 4, 4), 1)
    (expected,) = onnx_node("Conv", [x, kernel], strides=[2, 3], auto_pad="SAME_UPPER")
    (y,) = run(ConvolutionOp, [x, kernel], stride=[2, 3], padding_mode=PaddingMode.SAME_UPPER)
    assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_integers_are_exact() -> None:
    x, kernel = random((1, 8, 9, 9), dtype="int32"), random((4, 8, 3, 3), 1, "int32")
    (y,) = run(ConvolutionOp, [x, kernel])
    (expected,) = onnx_node("ConvInteger", [x.astype(np.int8), kernel.astype(np.int8)])
    assert_array_equal(y, expected)


def test_large_integers_wrap() -> None:
    x, kernel = np.full((1, 1, 2), 2**30, np.int32), np.full((1, 1, 2), 2**30 + 1, np.int32)
    (y,) = run(ConvolutionOp, [x, kernel])
    assert y[0, 0, 0] == -(2**31)


def test_half_accumulates_in_more_than_half() -> None:
    x, kernel = np.full((1, 4096, 1), 1, np.float16), np.full((1, 4096, 1), 1, np.float16)
    (y,) = run(ConvolutionOp, [x, kernel])
    assert y[0, 0, 0] == 4096


def test_kernel_and_bias_may_be_computed_1_6f() -> None:
    """They are operands like the input: nothing asks for constants."""
    op = layer(ConvolutionOp, [random((1, 2, 5)), random((3, 2, 2), 1), random((3,), 2)])
    assert not any(isinstance(operand.owner, ConstantOp) for operand in op.operands)
    assert dims(op.results[0].type) == (1, 3, 4)


@pytest.mark.parametrize("element", ["int8", "uint8"])
def test_bytes_padded_with_their_zero_point(element: str) -> None:
    zero = 3
    x, kernel = random((2, 4, 6, 7), dtype=element), random((6, 2, 3, 3), 1, "int8")
    bias = random((6,), 2, "int32")
    properties: dict[str, Any] = {"pre_padding": [1, 2], "post_padding": [2, 0], "num_groups": 2}
    (y,) = run(ConvolutionOp, [x, kernel, bias], padding_value=zero, **properties)
    real = (x.astype(np.float64) - zero, kernel.astype(np.float64), bias.astype(np.float64))
    (expected,) = run(ConvolutionOp, list(real), **properties)
    offsets = zero * kernel.astype(np.int64).sum((1, 2, 3))
    assert y.dtype == np.int32
    assert_array_equal(y - offsets[:, None, None], expected)
