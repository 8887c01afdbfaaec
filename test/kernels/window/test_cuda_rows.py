"""Pooling of planes, neighbouring columns in one thread: every kind, stride, dilation and border, whole and partial."""

from __future__ import annotations

import pytest
from gpu_kernels import kernel_names
from pooling_layer import pooling
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp, StoreFragmentOp
from mlirt.kernels.window.cuda import rows as cuda_rows


@pytest.fixture(autouse=True)
def _large_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads have as many results as in large networks."""
    monkeypatch.setattr(cuda_rows, "_THREADS", 0)


def columns(module: ModuleOp) -> set[int]:
    """How many results the kernel stores together."""
    kernels = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("window")]
    return {len(op.offsets) for op in kernels[0].walk() if isinstance(op, StoreFragmentOp)}


@pytest.mark.parametrize("element", ["f32", "f16", "i8"])
@pytest.mark.parametrize("kind", ["max", "average"])
@pytest.mark.parametrize(
    ("size", "stride", "dilation", "pads"),
    [(3, 1, 1, (1, 1)), (3, 2, 1, (1, 0)), (2, 2, 1, (0, 0)), (3, 1, 2, (2, 2)), (5, 1, 1, (2, 2)), (2, 1, 1, (0, 1))],
)
def test_windows(kind: str, element: str, size: int, stride: int, dilation: int, pads: tuple[int, int]) -> None:
    module = pooling(kind, (2, 3, 11, 16 * stride), element, size=size, stride=stride, dilation=dilation, pads=pads)
    assert columns(module) == {4 if element == "f32" else 8}


@pytest.mark.parametrize("includes", [False, True])
@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("height", [8, 9, 10, 11])
def test_means_of_partial_blocks(height: int, element: str, includes: bool) -> None:
    assert columns(pooling("average", (1, 2, height, 24), element, includes=includes))


@pytest.mark.parametrize(("width", "wide"), [(8, 8), (12, 4), (14, 2)])
def test_columns_are_as_many_as_rows_allow(width: int, wide: int) -> None:
    for kind in ("max", "average"):
        assert columns(pooling(kind, (2, 3, 5, width), "f16")) == {wide}


@pytest.mark.parametrize("width", [7, 9, 13])
def test_odd_rows_are_left_to_strips(width: int) -> None:
    assert not columns(pooling("max", (2, 3, 5, width), "f16"))


@pytest.mark.parametrize("pads", [(3, 3), (0, 5), (4, 0)])
def test_means_of_nothing(pads: tuple[int, int]) -> None:
    """Windows that lie outside."""
    assert columns(pooling("average", (1, 2, 8, 18 - sum(pads)), "f32", pads=pads)) == {4} or sum(pads) == 5


def test_signals() -> None:
    for kind in ("max", "average"):
        assert columns(pooling(kind, (2, 3, 32), "f16")) == {8}


def test_volumes_are_left_to_strips() -> None:
    assert not columns(pooling("max", (1, 2, 4, 6, 8), "f16"))


def test_cells_inside_of_rows_are_loaded_16_bytes_at_a_time() -> None:
    module = pooling("average", (1, 2, 8, 32), "f16")
    (kernel,) = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    assert kernel_names(module) == ["window"]
    loads = [len(op.offsets) for op in kernel.walk() if isinstance(op, LoadFragmentOp)]
    assert sorted(loads) == sorted([1, 8, 1] * 6)


@pytest.mark.parametrize("height", [10, 11, 12, 13])
def test_partial_blocks_without_padding(height: int) -> None:
    """Nothing is read behind the last line."""
    for kind in ("max", "average"):
        assert columns(pooling(kind, (1, 2, height, 18), "f16", pads=(0, 0)))
