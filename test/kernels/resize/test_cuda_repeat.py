"""Resizing that repeats elements: every width of element, factor and order, and what is left to the other kernels."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_kernels import check_on_threads
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp, LoadOp
from mlirt.dialects.kernel.fragment import StoreFragmentOp

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i8": np.int8, "ui8": np.uint8}


def resized(
    shape: tuple[int, ...], factors: tuple[int, ...], element: str, *, last: bool = False, how: str = "asymmetric"
) -> FuncOp:
    """The kernel that repeats elements, checked."""
    out = tuple(length * factor for length, factor in zip(shape, factors, strict=True))

    def type_of(sizes: tuple[int, ...], *, transposed: bool) -> str:
        names, order = ", ".join(f'"{size}"' for size in sizes), [0, *range(2, len(sizes)), 1]
        way = f", #trt.dims<[{names}], order = {order}>" if transposed else ""
        return f"tensor<{'x'.join(map(str, sizes))}x{element}{way}>"

    x, y = (type_of(sizes, transposed=False) for sizes in (shape, out))
    a, b = (type_of(sizes, transposed=last) for sizes in (shape, out))
    text = f"""
    func.func @main(%x: {x} {{trt.name = "x"}}) -> ({y} {{trt.name = "y"}}) {{
      {f"%a = fused.reformat %x : ({x}) -> {a}" if last else ""}
      %b = fused.resize nearest {"%a" if last else "%x"} {{coordinate = #trt<coordinate {how}>}} : ({a}) -> {b}
      {f"%y = fused.reformat %b : ({b}) -> {y}" if last else ""}
      func.return {"%y" if last else "%b"} : {y}
    }}"""
    values = np.random.default_rng(0).integers(0, 100, shape).astype(DTYPES[element])
    return kernel_of(check_on_threads(text, {"x": values}))


def kernel_of(module: ModuleOp) -> FuncOp:
    (kernel,) = [op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("resize")]
    return kernel


def widths(kernel: FuncOp) -> set[int]:
    """Neighbours that its stores write at once."""
    return {len(op.offsets) for op in kernel.walk() if isinstance(op, StoreFragmentOp)}


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("element", list(DTYPES))
@pytest.mark.parametrize("factors", [(1, 1, 2, 2), (1, 1, 3, 1), (1, 1, 1, 4), (1, 1, 2, 3)])
def test_factors(factors: tuple[int, ...], element: str, last: bool) -> None:
    assert widths(resized((2, 16, 3, 8), factors, element, last=last))


@pytest.mark.parametrize("shape", [(1, 3, 5, 7), (2, 5, 9), (1, 2, 3, 4, 6), (6, 10)])
def test_shapes(shape: tuple[int, ...]) -> None:
    assert widths(resized(shape, (*(1,) * (len(shape) - 1), 2), "f32"))


@pytest.mark.parametrize(("element", "wide"), [("f16", 8), ("f32", 4), ("f64", 2)])
def test_much_to_do_is_written_16_bytes_at_a_time(element: str, wide: int) -> None:
    kernel = resized((4, 32, 32, 64), (1, 1, 2, 2), element)
    assert widths(kernel) == {wide}
    assert not any(isinstance(op, LoadOp) for op in kernel.walk())


def test_with_little_to_do_threads_write_a_word() -> None:
    assert widths(resized((1, 4, 8, 8), (1, 1, 2, 2), "f16")) == {2}


def test_elements_that_do_not_stand_equally_often() -> None:
    """The corners stay where they are, so that inner elements stand more often."""
    assert not widths(resized((1, 4, 8, 8), (1, 1, 2, 2), "f32", how="align_corners"))
