"""Deconvolution (tensorrt-features.md#1.7): the reference against ONNX Runtime, and as the transpose of convolution."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from trt_layers import onnx_node, random, run

from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.window_arithmetic import PaddingMode


@pytest.mark.parametrize("spatial", [(5,), (5, 4), (3, 4, 5)], ids=["1d", "2d", "3d"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("extra", [0, 1])
def test_against_onnxruntime_1_7(spatial: tuple[int, ...], groups: int, extra: int) -> None:
    rank = len(spatial)
    x, kernel, bias = random((2, 4, *spatial)), random((4, 3, *[3] * rank), 1), random((3 * groups,), 2)
    steps, pads, dilations = [2, 3, 2][:rank], [1, 0, 1][:rank], [1, 2, 1][:rank]
    more = [extra] * rank
    (expected,) = onnx_node(
        "ConvTranspose",
        [x, kernel, bias],
        strides=steps,
        dilations=dilations,
        pads=[*pads, *pads[::-1]],
        group=groups,
        output_padding=more,
    )
    (y,) = run(
        DeconvolutionOp,
        [x, kernel, bias],
        {0: "n,4," + ",".join("hwd"[:rank])},
        stride=steps,
        dilation=dilations,
        pre_padding=pads,
        post_padding=pads[::-1],
        num_groups=groups,
        output_padding=more,
    )
    assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_is_the_transpose_of_convolution() -> None:
    x, y, kernel = random((1, 3, 9)).astype(np.float64), random((1, 5, 4), 1).astype(np.float64), random((5, 3, 3), 2)
    kernel = kernel.astype(np.float64)
    (forward,) = run(ConvolutionOp, [x, kernel], stride=[2])
    (backward,) = run(DeconvolutionOp, [y, kernel], stride=[2])
    assert_allclose((forward * y).sum(), (x * backward).sum())


@pytest.mark.parametrize("mode", [PaddingMode.SAME_UPPER, PaddingMode.SAME_LOWER])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_same_gives_length_times_stride_1_6g(mode: PaddingMode, size: int) -> None:
    x, kernel = random((1, 1, 5)), random((1, 1, size), 1)
    (y,) = run(DeconvolutionOp, [x, kernel], {0: "1,1,w"}, stride=[2], padding_mode=mode)
    (full,) = run(DeconvolutionOp, [x, kernel], stride=[2])
    cut = full.shape[2] - y.shape[2]
    before = cut // 2 if mode is PaddingMode.SAME_UPPER else cut - cut // 2
    assert y.shape[2] == min(10, full.shape[2])
    assert_array_equal(y, full[:, :, before : before + y.shape[2]])


def test_leading_axes_fold_into_the_batch() -> None:
    x, kernel = random((2, 3, 4, 5)), random((4, 2, 3), 1)
    (y,) = run(DeconvolutionOp, [x, kernel])
    (flat,) = run(DeconvolutionOp, [x.reshape(6, 4, 5), kernel])
    assert_array_equal(y, flat.reshape(2, 3, 2, 7))
