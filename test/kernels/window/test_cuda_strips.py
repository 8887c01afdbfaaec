"""Pooling in strips of rows: every kind, stride, dilation and border, channels last or not, whole and partial."""

from __future__ import annotations

import pytest
from gpu_kernels import kernel_names
from pooling_layer import pooling
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp, StoreOp
from mlirt.dialects.kernel.fragment import StoreFragmentOp
from mlirt.kernels.window.cuda import strips as cuda_strips


@pytest.fixture(autouse=True)
def _long_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strips are as long as in large networks."""
    monkeypatch.setattr(cuda_strips, "_THREADS", 0)


def stores(module: ModuleOp) -> int:
    """Of the kernel of the layer."""
    kernels = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("window")]
    return sum(isinstance(op, StoreOp | StoreFragmentOp) for op in kernels[0].walk())


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("element", ["f32", "f16", "i8"])
@pytest.mark.parametrize("kind", ["max", "average"])
@pytest.mark.parametrize(
    ("size", "stride", "dilation", "pads"),
    [(3, 1, 1, (1, 1)), (3, 2, 1, (1, 1)), (3, 2, 1, (0, 1)), (2, 1, 1, (0, 0)), (3, 1, 2, (2, 2)), (5, 1, 1, (2, 2))],
)
def test_windows(
    kind: str, element: str, last: bool, size: int, stride: int, dilation: int, pads: tuple[int, int]
) -> None:
    shape = (2, 16, 9, 11)
    made = pooling(kind, shape, element, last=last, size=size, stride=stride, dilation=dilation, pads=pads)
    assert "window" in kernel_names(made)
    rows = 4 if stride == 1 else 2
    # Vectors of int8 take more registers.
    assert stores(made) in ((1, 2) if element == "i8" and last else (rows,))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("height", [8, 9, 10, 11])
def test_partial_strips(height: int, last: bool) -> None:
    pooling("average", (1, 8, height, 6), "f32", last=last, includes=True)


@pytest.mark.parametrize("shape", [(2, 8, 20), (1, 8, 5, 6, 7)])
def test_signals_and_volumes(shape: tuple[int, ...]) -> None:
    assert stores(pooling("max", shape, "f16", last=True)) == 4


def test_windows_side_by_side_share_nothing() -> None:
    assert stores(pooling("max", (1, 8, 8, 8), "f32", last=True, size=2, stride=2, pads=(0, 0))) == 1


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("height", [10, 11, 12, 13])
def test_partial_strips_without_padding(height: int, last: bool) -> None:
    """Nothing is read behind the last line."""
    for kind in ("max", "average"):
        pooling(kind, (1, 8, height, 7), "f32", last=last, pads=(0, 0))
