"""Depthwise convolutions of planes, neighbouring columns in one thread: every window, stride and border."""

from __future__ import annotations

import pytest
from depthwise_layer import depthwise
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp, StoreFragmentOp
from mlirt.kernels.convolution.cuda import depthwise_rows as cuda_depthwise_rows


@pytest.fixture(autouse=True)
def _large_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads have as many results as in large networks."""
    monkeypatch.setattr(cuda_depthwise_rows, "_THREADS", 0)


def kernel(module: ModuleOp) -> FuncOp:
    (found,) = [
        op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("depthwise")
    ]
    return found


def stores(module: ModuleOp) -> list[int]:
    """How many results each store of the kernel writes."""
    return [len(op.offsets) for op in kernel(module).walk() if isinstance(op, StoreFragmentOp)]


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("height", [8, 11])
@pytest.mark.parametrize(
    ("size", "stride", "dilation", "pad"), [(3, 1, 1, 1), (3, 2, 1, 1), (5, 1, 1, 2), (3, 1, 2, 2), (2, 2, 1, 0)]
)
def test_windows(element: str, height: int, size: int, stride: int, dilation: int, pad: int) -> None:
    module = depthwise((2, 3, height, 16 * stride), element, size, stride, dilation, pad, planes=True)
    rows = 4 if stride == 1 else 2
    # Many taps are enough work with fewer rows.
    assert stores(module) == [4 if element == "f32" else 8] * (2 if size == 5 and element == "f16" else rows)


@pytest.mark.parametrize(("width", "wide"), [(8, 8), (12, 4), (14, 2)])
def test_columns_are_as_many_as_rows_allow(width: int, wide: int) -> None:
    assert stores(depthwise((2, 3, 4, width), "f16", planes=True)) == [wide] * 4


@pytest.mark.parametrize("width", [7, 9])
def test_odd_rows_are_left_to_blocks_of_rows(width: int) -> None:
    assert not stores(depthwise((2, 3, 4, width), "f16", planes=True))


def test_signals() -> None:
    assert stores(depthwise((2, 3, 32), "f16", planes=True)) == [8]


def test_cells_inside_of_rows_are_loaded_16_bytes_at_a_time() -> None:
    module = depthwise((1, 2, 8, 32), "f16", planes=True)
    loads = [len(op.offsets) for op in kernel(module).walk() if isinstance(op, LoadFragmentOp)]
    assert sorted(loads) == sorted([9, *[1, 8, 1] * 6])
