"""Reductions across memory whose columns the threads of a block share out, on the SIMT interpreter."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from gpu_kernels import check_on_threads
from lowered_network import parse_module

from mlirt.dialects.device_files import gpu_device
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.kernel.core import FuncOp
from mlirt.kernels.lib.column_blocks import column_blocks

DTYPES = {"f32": np.float32, "f16": np.float16, "i32": np.int32}
WIDE = {"f32": "f32", "f16": "f32", "i32": "i32"}
# Shapes, what is reduced of them, and the order in which the channels lie: the last two are read along memory.
SHAPES = [
    ((3, 65, 33), (1,)),
    ((1, 100, 5), (1,)),
    ((5, 70, 8, 9), (1,)),
    ((2, 3, 64, 32), (1, 2)),
    ((200, 1, 40), (0,)),
    ((5, 9, 11, 7), (1, 2)),
]


def _network(shape: tuple[int, ...], axes: tuple[int, ...], element: str, kind: str) -> str:
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    places = {axis: f"d{kept.index(axis)}" for axis in kept}
    places |= {axis: f"d{len(kept) + number}" for number, axis in enumerate(axes)}
    access = ", ".join(f'"{places[axis]}"' for axis in range(len(shape)))
    reduced = ", ".join(f'"{shape[axis]}"' for axis in axes)
    source = f"tensor<{'x'.join(map(str, shape))}x{element}>"
    extra = f"tensor<{shape[kept[-1]]}x{element}>"
    result = f"tensor<{'x'.join(str(shape[axis]) for axis in kept)}x{element}>"
    wide = WIDE[element]
    convert = {"f16": "arith.extf %e : f16 to f32", "f32": "arith.addf %e, %e : f32", "i32": "arith.addi %e, %e : i32"}
    add = "arith.addi" if element == "i32" else "arith.addf"
    body = f"      %b = {convert[element]}\n      fused.yield %b : {wide}"
    widened = "      %x1 = arith.extf %b : f16 to f32\n" if element == "f16" else ""
    b = "%x1" if element == "f16" else "%b"
    narrowed = "      %n = arith.truncf %s : f32 to f16\n" if element == "f16" else ""
    last = "%n" if element == "f16" else "%s"
    return f"""
    func.func @main(%x: {source} {{trt.name = "x"}}, %z: {extra} {{trt.name = "z"}}) -> ({result} {{trt.name = "y"}}) {{
      %y = fused.reduction {kind}(%x) extras(%z : {extra}) {{access = [#fused.access<[{access}]>],
          reduced = #trt.dims<[{reduced}]>, extra_access = [#fused.access<["d{len(kept) - 1}"]>]}}
          : ({source}) -> {result} {{
      ^bb0(%e: {element}):
{body}
      }} {{
      ^bb0(%t: {wide}, %b: {element}):
{widened}      %s = {add} %t, {b} : {wide}
{narrowed}      fused.yield {last} : {element}
      }}
      func.return %y : {result}
    }}"""


@pytest.mark.parametrize(("shape", "axes"), SHAPES)
@pytest.mark.parametrize(("element", "kind"), [("f32", "add"), ("f16", "max"), ("i32", "min"), ("f32", "mul")])
def test_columns(shape: tuple[int, ...], axes: tuple[int, ...], element: str, kind: str) -> None:
    random, count = np.random.default_rng(0), prod(shape[axis] for axis in axes)
    if kind == "mul":
        x = random.uniform(0.45, 0.55, shape)
    else:
        x = random.integers(-9, 10, shape)
    z = random.integers(-9, 10, shape[max(axis for axis in range(len(shape)) if axis not in axes)])
    inputs = {"x": x.astype(DTYPES[element]), "z": z.astype(DTYPES[element])}
    module = check_on_threads(_network(shape, axes, element, kind), inputs, tolerance=1e-5 * count)
    (kernel,) = [op for op in module.ops if isinstance(op, FuncOp)]
    assert any("totals" in str(op) for op in kernel.walk())


@pytest.mark.parametrize(
    ("shape", "is_one_launch"),
    [
        ((8, 576, 960), False),
        ((8, 576, 1536), False),
        ((8, 144, 1536), False),
        ((32, 196, 480), False),
        ((16, 256, 256), True),
    ],
)
def test_what_was_measured_is_two_launches(shape: tuple[int, ...], is_one_launch: bool) -> None:
    """On an H200 the first four took 6.4 to 12.7 us as one launch, 4.9 to 6.5 as two."""
    module, _ = parse_module(_network(shape, (1,), "f16", "add"))
    reduction = next(op for op in module.walk() if isinstance(op, ReductionOp))
    assert (column_blocks(reduction, {}, gpu_device("h200")) is not None) == is_one_launch
