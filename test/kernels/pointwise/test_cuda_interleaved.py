"""Neighbours that are deinterleaved to lines, and lines that are interleaved: every width, number and partner."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_kernels import check_on_threads
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp, StoreFragmentOp
from mlirt.kernels.pointwise.cuda import interleaved as cuda_interleaved

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i8": np.int8, "ui8": np.uint8}


@pytest.fixture(autouse=True)
def _wide_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles are as wide as in large networks."""
    monkeypatch.setattr(cuda_interleaved, "_THREADS", 0)


def accesses(module: ModuleOp) -> tuple[set[int], set[int]]:
    """How many neighbours the loads and the stores of the kernel move."""
    (kernel,) = [op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("pointwise")]
    found = [op for op in kernel.walk() if isinstance(op, LoadFragmentOp | StoreFragmentOp)]
    loads = {len(op.offsets) for op in found if isinstance(op, LoadFragmentOp)}
    stores = {len(op.offsets) for op in found if isinstance(op, StoreFragmentOp)}
    return loads, stores


def moved(shape: tuple[int, ...], out: tuple[int, ...], access: list[str], element: str) -> ModuleOp:
    """A copy through an access, checked."""
    x, y = (f"tensor<{'x'.join(map(str, sizes))}x{element}>" for sizes in (shape, out))
    names = ", ".join(f'"{index}"' for index in access)
    text = f"""
    func.func @main(%x: {x} {{trt.name = "x"}}) -> ({y} {{trt.name = "y"}}) {{
      %y = fused.pointwise %x {{access = [#fused.access<[{names}]>]}} : ({x}) -> {y} {{
      ^bb0(%0: {element}):
        fused.yield %0 : {element}
      }}
      func.return %y : {y}
    }}"""
    values = np.random.default_rng(0).integers(0, 100, shape).astype(DTYPES[element])
    return check_on_threads(text, {"x": values}, tolerance=0)


@pytest.mark.parametrize("element", list(DTYPES))
@pytest.mark.parametrize("lines", [2, 3, 4, 7])
def test_lines_become_a_run(lines: int, element: str) -> None:
    loads, stores = accesses(moved((3, lines, 16), (3, 16, lines), ["d0", "d2", "d1"], element))
    if element == "f64":  # one element is 8 bytes
        return
    assert {size * lines for size in loads} == stores


@pytest.mark.parametrize("element", list(DTYPES))
@pytest.mark.parametrize("lines", [2, 3, 4, 7])
def test_a_run_becomes_lines(lines: int, element: str) -> None:
    loads, stores = accesses(moved((3, 16, lines), (3, lines, 16), ["d0", "d2", "d1"], element))
    if element == "f64":
        return
    assert loads == {size * lines for size in stores}


@pytest.mark.parametrize("columns", [12, 10, 6, 5, 2, 1])
def test_accesses_are_as_wide_as_rows_allow(columns: int) -> None:
    for element in ("f16", "f32"):
        moved((2, 3, 2, 5, columns), (2, 3, 5, columns, 2), ["d0", "d1", "d4", "d2", "d3"], element)


def test_blocks_of_channels_become_pixels() -> None:
    """Depth to space: an image whose pixels were channels."""
    found = moved((2, 2, 2, 3, 4, 8), (2, 3, 4, 2, 8, 2), ["d0", "d3", "d5", "d1", "d2", "d4"], "f16")
    assert accesses(found) == ({4}, {8})


def test_a_sum_of_a_run_with_lines_and_with_what_is_repeated() -> None:
    run, lines = "tensor<4x16x2xf16>", "tensor<4x2x16xf16>"
    text = f"""
    func.func @main(%x: {lines} {{trt.name = "x"}}, %z: {run} {{trt.name = "z"}}, %b: tensor<2xf16> {{trt.name = "b"}},
        %w: tensor<16xf16> {{trt.name = "w"}}) -> ({run} {{trt.name = "y"}}) {{
      %y = fused.pointwise %x, %z, %b, %w {{access = [#fused.access<["d0", "d2", "d1"]>,
          #fused.access<["d0", "d1", "d2"]>, #fused.access<["d2"]>, #fused.access<["d1"]>]}}
          : ({lines}, {run}, tensor<2xf16>, tensor<16xf16>) -> {run} {{
      ^bb0(%0: f16, %1: f16, %2: f16, %3: f16):
        %4 = arith.addf %0, %1 : f16
        %5 = arith.mulf %4, %2 : f16
        %6 = arith.addf %5, %3 : f16
        fused.yield %6 : f16
      }}
      func.return %y : {run}
    }}"""
    random = np.random.default_rng(0)
    shapes = {"x": (4, 2, 16), "z": (4, 16, 2), "b": (2,), "w": (16,)}
    given = {name: random.integers(-9, 9, shape).astype(np.float16) for name, shape in shapes.items()}
    loads, stores = accesses(check_on_threads(text, given, tolerance=0))
    assert (loads, stores) == ({4, 8}, {8})


def test_a_dynamic_number_of_images() -> None:
    x, y = ('tensor<?x2x16xf16, #trt.dims<["n", "2", "16"]>>', 'tensor<?x16x2xf16, #trt.dims<["n", "16", "2"]>>')
    text = f"""
    func.func @main(%x: {x} {{trt.name = "x"}}) -> ({y} {{trt.name = "y"}}) {{
      %y = fused.pointwise %x {{access = [#fused.access<["d0", "d2", "d1"]>]}} : ({x}) -> {y} {{
      ^bb0(%0: f16):
        fused.yield %0 : f16
      }}
      func.return %y : {y}
    }}"""
    values = np.random.default_rng(0).standard_normal((5, 2, 16)).astype(np.float16)
    assert accesses(check_on_threads(text, {"x": values}, tolerance=0)) == ({4}, {8})
