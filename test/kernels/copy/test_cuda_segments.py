"""Padding along neighbours in memory: every mode, rows that vectors reach across, borders, crops and strides."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_kernels import check_on_threads
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.fragment import StoreFragmentOp
from mlirt.kernels.copy.cuda import segments as cuda_segments

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i8": np.int8, "ui8": np.uint8}
MODES = ("constant", "edge", "reflect", "wrap")


@pytest.fixture(autouse=True)
def _long_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors are as long as in large networks."""
    monkeypatch.setattr(cuda_segments, "_THREADS", 0)


def padded(
    shape: tuple[int, ...],
    pre: tuple[int, ...],
    out: tuple[int, ...],
    element: str,
    *,
    mode: str = "constant",
    stride: tuple[int, ...] | None = None,
    fill: int | None = None,
) -> set[int]:
    """How many neighbours the stores of the kernel move; its results are checked."""
    x, y, one = (f"tensor<{'x'.join(map(str, sizes))}x{element}>" for sizes in (shape, out, (1,)))
    names = ", ".join(f'"{place}"' for place in pre)
    steps = ", ".join(f'"{step}"' for step in stride or ())
    kinds = f"({x}) -> {y}" if fill is None else f"({x}, {one}) -> {y}"
    more = f", stride = #trt.dims<[{steps}]>" if stride else ""
    value = f"%f = trt.constant {{value = dense<{fill}{'' if 'i' in element else '.0'}> : {one}}} : {one}"
    text = f"""
    func.func @main(%x: {x} {{trt.name = "x"}}) -> ({y} {{trt.name = "y"}}) {{
      {"" if fill is None else value}
      %y = fused.pad %x{"" if fill is None else ", %f"}
          {{pre = #trt.dims<[{names}]>, mode = #fused<pad_mode {mode}>{more}}} : {kinds}
      func.return %y : {y}
    }}"""
    values = np.random.default_rng(0).integers(1, 100, shape).astype(DTYPES[element])
    return widths(check_on_threads(text, {"x": values}, tolerance=0))


def widths(module: ModuleOp) -> set[int]:
    (kernel,) = [op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("pad")]
    return {len(op.offsets) for op in kernel.walk() if isinstance(op, StoreFragmentOp)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("element", list(DTYPES))
@pytest.mark.parametrize("width", [16, 17, 21, 9])
def test_modes(mode: str, element: str, width: int) -> None:
    """Rows of results are multiples of vectors or not, and some results have a rest behind the last vector."""
    wide = padded((2, 3, 5, width), (0, 0, 1, 2), (2, 3, 7, width + 3), element, mode=mode)
    assert wide == {16 // np.dtype(DTYPES[element]).itemsize} or (element in ("i8", "ui8") and width == 9)


@pytest.mark.parametrize("fill", [0, 7])
def test_fill(fill: int) -> None:
    assert padded((3, 11), (1, 3), (6, 17), "f16", fill=fill) == {8}


@pytest.mark.parametrize("shape", [(20,), (2, 20), (2, 3, 4, 2, 9)])
def test_ranks(shape: tuple[int, ...]) -> None:
    rest = (0,) * (len(shape) - 1)
    assert padded(shape, (*rest, 3), (*shape[:-1], shape[-1] + 4), "f32") == {4}


def test_borders_along_several_axes() -> None:
    assert padded((2, 3, 4, 5), (1, 2, 0, 3), (5, 6, 4, 9), "f32") == {4}


def test_crops_and_strides() -> None:
    assert padded((5, 40), (-1, -3), (4, 19), "f16", stride=(1, 2)) == {8}
    assert padded((3, 40), (0, -39), (3, 47), "f32", stride=(1, -1)) == {4}


@pytest.mark.parametrize("width", [1, 2, 3, 5, 6])
def test_rows_shorter_than_a_vector(width: int) -> None:
    padded((4, 3, width), (0, 1, 1), (4, 5, width + 2), "f16")


def test_what_is_not_moved_along_neighbours_is_left_to_plain_loops() -> None:
    assert not padded((2, 3, 20), (0, 1, 0), (2, 5, 20), "f32")


def test_little_to_do_is_spread_over_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_segments, "_THREADS", 16 / 16384)
    assert padded((4, 14), (0, 1), (4, 16), "f16") == {4}
