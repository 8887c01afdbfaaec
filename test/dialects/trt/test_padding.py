"""Padding (tensorrt-features.md#1.24): the reference against NumPy and ONNX Runtime."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from trt_layers import onnx_node, random, run

from mlirt.dialects.slicing import PadMode
from mlirt.dialects.trt.padding import PaddingOp

Mode = Literal["constant", "reflect", "edge", "wrap"]
MODES: dict[PadMode, Mode] = {
    PadMode.CONSTANT: "constant",
    PadMode.REFLECT: "reflect",
    PadMode.EDGE: "edge",
    PadMode.WRAP: "wrap",
}


@pytest.mark.parametrize("mode", list(PadMode))
@pytest.mark.parametrize(("pre", "post"), [((0, 1), (2, 0)), ((5, 7), (9, 3)), ((0, 0), (0, 0))])
def test_as_numpy_1_24(mode: PadMode, pre: tuple[int, int], post: tuple[int, int]) -> None:
    x = random((3, 4))
    (y,) = run(PaddingOp, [x], {0: "n,w"}, pre=pre, post=post, mode=mode)
    assert_array_equal(y, np.pad(x, tuple(zip(pre, post, strict=True)), MODES[mode]))


def test_negative_crops_1_24() -> None:
    x = random((5, 6))
    (y,) = run(PaddingOp, [x], {0: "n,w"}, pre=[-1, 2], post=[-2, -3])
    assert_array_equal(y, np.pad(x[1:-2, :-3], ((0, 0), (2, 0))))


def test_value_as_in_onnxruntime() -> None:
    x, value = random((2, 3)), np.array(7.5, np.float32)
    (expected,) = onnx_node("Pad", [x, np.array([1, -1, 0, 2]), value])
    (y,) = run(PaddingOp, [x, value], pre=[1, -1], post=[0, 2])
    assert_array_equal(y, expected)


def test_length_1_reflects_itself() -> None:
    (y,) = run(PaddingOp, [np.array([3], np.int64)], pre=[2], post=[1], mode=PadMode.REFLECT)
    assert y.tolist() == [3, 3, 3, 3]
