"""Operands that lie across the result are transposed in shared memory, whatever their sizes and alignments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu_kernels import check_on_threads
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp
from mlirt.dialects.kernel.simt import SharedOp
from mlirt.kernels.lib.cuda.transposition.transposed_plan import _tile  # pyright: ignore[reportPrivateUsage]

DTYPES: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "i8": np.int8, "f64": np.float64}


def transposed(module: ModuleOp) -> int:
    """How many kernels use shared memory."""
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    return sum(any(isinstance(op, SharedOp) for op in function.walk()) for function in functions)


def image(shape: tuple[int, ...], element: str, *, last: bool) -> str:
    sizes = "x".join(map(str, shape))
    names = ", ".join(f'"{size}"' for size in shape)
    return f"tensor<{sizes}x{element}{f', #trt.dims<[{names}], order = [0, 2, 3, 1]>' if last else ''}>"


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("shape", [(2, 64, 16, 16), (2, 50, 13, 17), (1, 3, 80, 100), (1, 700, 5, 5)])
def test_copies_between_orders(shape: tuple[int, ...], element: str) -> None:
    plain, last = image(shape, element, last=False), image(shape, element, last=True)
    text = f"""
    func.func @main(%x: {plain} {{trt.name = "x"}}) -> ({plain} {{trt.name = "y"}}) {{
      %a = fused.reformat %x : ({plain}) -> {last}
      %y = fused.reformat %a : ({last}) -> {plain}
      func.return %y : {plain}
    }}"""
    values = np.random.default_rng(0).integers(-99, 99, shape).astype(DTYPES[element])
    assert transposed(check_on_threads(text, {"x": values}, tolerance=0)) > 0


def test_dynamic_images() -> None:
    """Strides are formulas; what is a multiple of eight whatever the sizes are is moved 16 bytes at a time."""
    sizes = '"n", "64", "h", "w"'
    plain, last = (f"tensor<?x64x?x?xf16, #trt.dims<[{sizes}]{order}>>" for order in ("", ", order = [0, 2, 3, 1]"))
    text = f"""
    func.func @main(%x: {plain} {{trt.name = "x"}}) -> ({plain} {{trt.name = "y"}}) {{
      %a = fused.reformat %x : ({plain}) -> {last}
      %b = fused.pointwise %a {{access = [#fused.access<["d0", "d1", "d2", "d3"]>]}} : ({last}) -> {last} {{
      ^bb0(%0: f16):
        %1 = arith.negf %0 : f16
        fused.yield %1 : f16
      }}
      %y = fused.reformat %b : ({last}) -> {plain}
      func.return %y : {plain}
    }}"""
    module = check_on_threads(text, {"x": np.random.default_rng(0).standard_normal((3, 64, 9, 7)).astype(np.float16)})
    assert transposed(module) == 2
    negation = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("pointwise"))
    assert [len(op.offsets) for op in negation.walk() if isinstance(op, LoadFragmentOp)] == [8]


@pytest.mark.parametrize("size", [(192, 256), (127, 131), (3, 7000), (7000, 3)])
def test_a_sum_of_operands_that_lie_differently(size: tuple[int, int]) -> None:
    """One operand lies along the result, two across it, one is repeated, one is a number."""
    rows, columns = size
    result, across = f"tensor<{rows}x{columns}xf32>", f"tensor<{columns}x{rows}xf16>"
    own, other = '#fused.access<["d0", "d1"]>', '#fused.access<["d1", "d0"]>'
    text = f"""
    func.func @main(%x: {result} {{trt.name = "x"}}, %z: {across} {{trt.name = "z"}},
        %w: {across} {{trt.name = "w"}}, %b: tensor<{rows}xf32> {{trt.name = "b"}}) -> ({result} {{trt.name = "y"}}) {{
      %k = trt.constant {{value = dense<3.0> : tensor<1xf32>}} : tensor<1xf32>
      %y = fused.pointwise %x, %z, %w, %b, %k
          {{access = [{own}, {other}, {other}, #fused.access<["d0"]>, #fused.access<["0"]>]}}
          : ({result}, {across}, {across}, tensor<{rows}xf32>, tensor<1xf32>) -> {result} {{
      ^bb0(%0: f32, %1: f16, %2: f16, %3: f32, %4: f32):
        %p = arith.extf %1 : f16 to f32
        %q = arith.extf %2 : f16 to f32
        %r = arith.mulf %q, %4 : f32
        %s = arith.addf %0, %p : f32
        %t = arith.addf %s, %r : f32
        %u = arith.addf %t, %3 : f32
        fused.yield %u : f32
      }}
      func.return %y : {result}
    }}"""
    rng = np.random.default_rng(0)
    inputs = {
        "x": rng.standard_normal(size).astype(np.float32),
        "z": rng.standard_normal((columns, rows)).astype(np.float16),
        "w": rng.standard_normal((columns, rows)).astype(np.float16),
        "b": rng.standard_normal(rows).astype(np.float32),
    }
    assert transposed(check_on_threads(text, inputs)) == 1


@pytest.mark.parametrize(("across", "along"), [(1, 1), (3, 50000), (50000, 3), (64, 64), (1000, 1000), (2, 100)])
def test_tiles_have_a_fixed_area(across: int, along: int) -> None:
    tall, wide = _tile(across, along, [2])
    assert tall * wide == 4096
    assert tall & (tall - 1) == 0
