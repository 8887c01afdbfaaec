"""Sampling at computed positions (tensorrt-features.md#1.43): the reference against ONNX Runtime and ONNX's own
reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from onnx.reference.ops.op_grid_sample import GridSample
from trt_layers import onnx_node, random, run

from mlirt.dialects.grid_sampling import SampleMode
from mlirt.dialects.interpolation import ResizeKind
from mlirt.dialects.trt.grid_sample import GridSampleOp

PADS = {SampleMode.FILL: "zeros", SampleMode.CLAMP: "border", SampleMode.REFLECT: "reflection"}
NAMES = {ResizeKind.NEAREST: "nearest", ResizeKind.LINEAR: "bilinear", ResizeKind.CUBIC: "bicubic"}


@pytest.mark.parametrize("kind", list(ResizeKind))
@pytest.mark.parametrize("mode", list(SampleMode))
@pytest.mark.parametrize("align", [False, True])
def test_two_axes_against_onnxruntime_1_43(kind: ResizeKind, mode: SampleMode, align: bool) -> None:
    x, grid = random((2, 3, 5, 6)), 1.3 * random((2, 4, 7, 2), 1)
    (expected,) = onnx_node(
        "GridSample", [x, grid], mode=NAMES[kind], padding_mode=PADS[mode], align_corners=int(align)
    )
    (y,) = run(GridSampleOp, [x, grid], {0: "n,3,h,w", 1: "n,p,q,2"}, kind=kind, mode=mode, align_corners=align)
    assert_allclose(y, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", [ResizeKind.NEAREST, ResizeKind.LINEAR])
@pytest.mark.parametrize("mode", list(SampleMode))
def test_three_axes_as_in_onnx(kind: ResizeKind, mode: SampleMode) -> None:
    x, grid = random((1, 2, 3, 4, 5)), random((1, 2, 3, 2, 3), 1)
    run_onnx: Any = getattr(GridSample, "_run")
    sampler: Any = object.__new__(GridSample)
    (expected,) = run_onnx(sampler, x, grid, mode=kind.value, padding_mode=PADS[mode], align_corners=1)
    (y,) = run(GridSampleOp, [x, grid], kind=kind, mode=mode, align_corners=True)
    assert_allclose(y, np.asarray(expected), rtol=1e-3, atol=1e-4)
