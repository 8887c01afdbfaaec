"""Pooling of channels that are innermost, with results in planes, in one launch that transposes tiles."""

from __future__ import annotations

import pytest
from gpu_kernels import kernel_names
from pooling_layer import pooling
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp
from mlirt.dialects.kernel.simt import BarrierOp


def is_transposed(module: ModuleOp) -> bool:
    """Whether the kernel of the layer goes by way of shared memory, and loads vectors of channels."""
    assert [name for name in kernel_names(module) if name != "copy"] == ["window"]
    (window,) = (op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("window"))
    ops = list(window.walk())
    return any(isinstance(op, BarrierOp) for op in ops) and any(isinstance(op, LoadFragmentOp) for op in ops)


@pytest.mark.parametrize("element", ["f32", "f16", "i8"])
@pytest.mark.parametrize("kind", ["max", "average"])
@pytest.mark.parametrize("shape", [(2, 64, 26, 28), (1, 40, 41, 43), (5, 128, 13, 19)])
def test_windows_side_by_side(kind: str, element: str, shape: tuple[int, ...]) -> None:
    assert is_transposed(pooling(kind, shape, element, last=True, planes=True, size=2, stride=2, pads=(0, 0)))


@pytest.mark.parametrize(
    ("size", "stride", "dilation"), [(3, 2, 1), (3, 1, 2), (2, 3, 1), (1, 2, 1)], ids=["overlap", "gaps", "far", "one"]
)
def test_windows(size: int, stride: int, dilation: int) -> None:
    made = pooling(
        "max", (2, 72, 37, 31), "f16", last=True, planes=True, size=size, stride=stride, dilation=dilation, pads=(0, 0)
    )
    assert is_transposed(made)


def test_volumes() -> None:
    assert is_transposed(
        pooling("max", (1, 40, 9, 21, 23), "f16", last=True, planes=True, size=2, stride=2, pads=(0, 0))
    )


def test_windows_beyond_the_input_are_left_to_others() -> None:
    assert not is_transposed(pooling("max", (2, 64, 25, 27), "f16", last=True, planes=True, size=2, pads=(1, 0)))
