"""Depthwise convolutions: every window, stride and border, channels last or planes, whole and partial blocks."""

from __future__ import annotations

import pytest
from depthwise_layer import depthwise
from gpu_kernels import kernel_names

from mlirt.dialects.kernel.core import FuncOp, StoreOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp
from mlirt.kernels.convolution.cuda import depthwise as cuda_depthwise


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(
    ("size", "stride", "dilation", "pad"), [(3, 1, 1, 1), (3, 2, 1, 1), (5, 1, 1, 2), (3, 1, 2, 2), (2, 2, 1, 0)]
)
def test_windows(element: str, size: int, stride: int, dilation: int, pad: int) -> None:
    assert "depthwise" in kernel_names(depthwise((2, 16, 9, 11), element, size, stride, dilation, pad))


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("height", [8, 9, 10, 11])
@pytest.mark.parametrize(
    ("size", "stride", "dilation", "pad"), [(3, 1, 1, 1), (3, 2, 1, 1), (5, 1, 1, 2), (3, 1, 2, 2)]
)
def test_planes(
    element: str, height: int, size: int, stride: int, dilation: int, pad: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread has a block of rows, as in large networks."""
    monkeypatch.setattr(cuda_depthwise, "_THREADS", 0)
    module = depthwise((2, 3, height, 9), element, size, stride, dilation, pad, planes=True)
    (kernel,) = [op for op in module.ops if isinstance(op, FuncOp)]
    assert kernel.sym_name.data.startswith("depthwise")
    assert sum(isinstance(op, StoreOp) for op in kernel.walk()) == (4 if stride == 1 else 2)


@pytest.mark.parametrize("width", [40, 41, 42, 43])
def test_blocks_of_columns(width: int) -> None:
    """With enough to do a thread computes four neighbouring results, of eight channels each."""
    module = depthwise((1, 256, 100, width), "f16")
    loads = [op for op in module.walk() if isinstance(op, LoadFragmentOp) and op.valid is not None]
    assert sum(len(op.offsets) == 8 for op in loads) >= 6


def test_signals_and_single_columns() -> None:
    assert "depthwise" in kernel_names(depthwise((2, 8, 50), "f32"))
    assert "depthwise" in kernel_names(depthwise((2, 8, 7, 1), "f32"))
    assert "depthwise" in kernel_names(depthwise((2, 8, 1, 7), "f32"))
    assert "depthwise" not in kernel_names(depthwise((2, 8, 50), "f32", planes=True))
