"""Mapping loop nests to threads keeps their meaning, without races, however the iterations are spread."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from gpu_kernels import check_on_threads
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp, StoreFragmentOp
from mlirt.dialects.kernel.simt import BarrierOp, ShuffleOp

DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i8": np.int8,
    "f64": np.float64,
}


def tensor(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def sum_of_two(shape: tuple[int, ...], access: str, other: tuple[int, ...], element: str) -> ModuleOp:
    """`y[d..] = x[d..] + z[access]`, checked; returns the lowered network."""
    x, z = tensor(shape, element), tensor(other, element)
    own = ", ".join(f'"d{axis}"' for axis in range(len(shape)))
    add = "arith.addi" if element[0] == "i" else "arith.addf"
    half = element in ("f16", "bf16")
    text = f"""
    func.func @main(%x: {x} {{trt.name = "x"}}, %z: {z} {{trt.name = "z"}}) -> ({x} {{trt.name = "y"}}) {{
      %y = fused.pointwise %x, %z {{access = [#fused.access<[{own}]>, #fused.access<[{access}]>]}}
          : ({x}, {z}) -> {x} {{
      ^bb0(%0: {element}, %1: {element}):
        {f"%a = arith.extf %0 : {element} to f32" if half else ""}
        {f"%b = arith.extf %1 : {element} to f32" if half else ""}
        %s = {add} {"%a, %b : f32" if half else f"%0, %1 : {element}"}
        {f"%r = arith.truncf %s : f32 to {element}" if half else ""}
        fused.yield {"%r" if half else "%s"} : {element}
      }}
      func.return %y : {x}
    }}"""
    rng = np.random.default_rng(0)
    inputs = {name: rng.integers(-9, 9, size).astype(DTYPES[element]) for name, size in (("x", shape), ("z", other))}
    return check_on_threads(text, inputs)


def kernel(module: ModuleOp) -> FuncOp:
    (found,) = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    return found


def has(module: ModuleOp, kind: type) -> bool:
    return any(isinstance(op, kind) for op in kernel(module).walk())


@pytest.mark.parametrize("element", DTYPES)
def test_contiguous_elements_move_16_bytes_at_a_time(element: str) -> None:
    module = sum_of_two((4, 64, 1024), '"d0", "d1", "d2"', (4, 64, 1024), element)
    accesses = [op for op in kernel(module).walk() if isinstance(op, LoadFragmentOp | StoreFragmentOp)]
    assert len(accesses) == 3
    assert all(op.wide.value.data for op in accesses)
    assert {len(op.offsets) for op in accesses} == {16 // np.dtype(DTYPES[element]).itemsize}


@pytest.mark.parametrize(("element", "width"), [("f32", 2), ("f16", 2), ("i8", 4)])
def test_with_little_to_do_vectors_are_narrower(element: str, width: int) -> None:
    module = sum_of_two((33, 1024), '"d0", "d1"', (33, 1024), element)
    accesses = [op for op in kernel(module).walk() if isinstance(op, LoadFragmentOp | StoreFragmentOp)]
    assert {len(op.offsets) for op in accesses} == {width}


@pytest.mark.parametrize("shape", [(64, 129), (3, 5), (2, 3, 4097)])
def test_odd_rows_are_not_vectors(shape: tuple[int, ...]) -> None:
    other = (*shape[:-1], 1)
    access = ", ".join([*(f'"d{axis}"' for axis in range(len(shape) - 1)), '"0"'])
    assert not has(sum_of_two(shape, access, other, "f32"), LoadFragmentOp)


LAST = '#trt.dims<["2", "64", "24", "24"], order = [0, 2, 3, 1]>'


@pytest.mark.parametrize("kind", ["max", "average"])
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_pooling_with_channels_last_is_done_in_vectors(kind: str, element: str) -> None:
    """Every line is read by wide loads; those that lie outside are left out for all channels at once."""
    x = f"tensor<2x64x24x24x{element}, {LAST}>"
    text = f"""
    func.func @main(%x: tensor<2x64x24x24x{element}> {{trt.name = "x"}})
        -> (tensor<2x64x24x24x{element}> {{trt.name = "y"}}) {{
      %a = fused.reformat %x : (tensor<2x64x24x24x{element}>) -> {x}
      %b = fused.window {kind} %a {{window = array<i64: 3, 3>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>,
          pre_padding = #trt.dims<["1", "1"]>, post_padding = #trt.dims<["1", "1"]>}} : ({x}) -> {x} {{
      ^bb0(%acc: {element if kind == "max" else "f32"}):
        {"%r = arith.truncf %acc : f32 to f16" if kind == "average" and element == "f16" else ""}
        fused.yield {"%r" if kind == "average" and element == "f16" else "%acc"} : {element}
      }}
      %y = fused.reformat %b : ({x}) -> tensor<2x64x24x24x{element}>
      func.return %y : tensor<2x64x24x24x{element}>
    }}"""
    values = np.random.default_rng(0).integers(-9, 9, (2, 64, 24, 24)).astype(DTYPES[element])
    module = check_on_threads(text, {"x": values}, tolerance=1e-3)
    (window,) = [op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("window")]
    assert {len(op.offsets) for op in window.walk() if isinstance(op, LoadFragmentOp)} == {4}


def reduction(rows: int, length: int, kind: str, element: str) -> ModuleOp:
    """The reduction of each row, checked."""
    x, y = tensor((rows, length), element), tensor((rows,), element)
    text = f"""
    func.func @main(%x: {x} {{trt.name = "x"}}) -> ({y} {{trt.name = "y"}}) {{
      %y = fused.reduction {kind}(%x) {{access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["{length}"]>}}
          : ({x}) -> {y} {{
      ^bb0(%e: {element}):
        fused.yield %e : {element}
      }} {{
      ^bb0(%acc: {element}):
        fused.yield %acc : {element}
      }}
      func.return %y : {y}
    }}"""
    return check_on_threads(
        text, {"x": np.random.default_rng(0).integers(-9, 9, (rows, length)).astype(_numpy(element))}
    )


def _numpy(element: str) -> Any:
    return {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "ui8": np.uint8, "i1": np.bool_}[
        element
    ]


@pytest.mark.parametrize(
    ("rows", "length", "shuffles", "barriers"),
    [
        (20000, 3, False, False),
        (9000, 40, True, False),
        (2000, 100, True, False),
        (5, 50, True, False),
        (3, 900, True, True),
    ],
)
def test_rows_are_reduced_by_threads_warps_or_blocks(rows: int, length: int, shuffles: bool, barriers: bool) -> None:
    module = reduction(rows, length, "add", "f32")
    assert (has(module, ShuffleOp), has(module, BarrierOp)) == (shuffles, barriers)


@pytest.mark.parametrize(
    ("kind", "element"), [("max", "f64"), ("min", "i64"), ("max", "ui8"), ("or", "i1"), ("mul", "i32")]
)
@pytest.mark.parametrize("length", [7, 60, 700])
def test_kinds_and_types(kind: str, element: str, length: int) -> None:
    reduction(3, length, kind, element)


def test_a_not_a_number_survives_in_every_team() -> None:
    for rows, length in ((20000, 3), (2000, 100), (3, 900)):
        x = np.zeros((rows, length), np.float32)
        x[rows // 2, length - 1] = np.nan
        given, result = tensor(x.shape, "f32"), tensor((rows,), "f32")
        text = f"""
        func.func @main(%x: {given} {{trt.name = "x"}}) -> ({result} {{trt.name = "y"}}) {{
          %y = fused.reduction max(%x) {{access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["{length}"]>}}
              : ({given}) -> {result} {{
          ^bb0(%e: f32):
            fused.yield %e : f32
          }} {{
          ^bb0(%acc: f32):
            fused.yield %acc : f32
          }}
          func.return %y : {result}
        }}"""
        check_on_threads(text, {"x": x})


def test_indices_are_wide_where_sizes_are_dynamic() -> None:
    text = """
    func.func @main(%x: tensor<?x3xf32, #trt.dims<["n", "3"]>> {trt.name = "x"})
        -> (tensor<3x?xf32, #trt.dims<["3", "n"]>> {trt.name = "y"}) {
      %y = fused.pointwise %x {access = [#fused.access<["d1", "d0"]>]}
          : (tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<3x?xf32, #trt.dims<["3", "n"]>> {
      ^bb0(%0: f32):
        fused.yield %0 : f32
      }
      func.return %y : tensor<3x?xf32, #trt.dims<["3", "n"]>>
    }"""
    for rows in (1, 100, 0):
        module = check_on_threads(text, {"x": np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)})
        assert "index_bits" not in kernel(module).attributes


@pytest.mark.parametrize(("most", "is_narrow"), [(100, True), (1 << 26, True), (1 << 30, False)])
def test_indices_are_as_wide_as_the_longest_lengths_of_a_profile_ask_for(most: int, is_narrow: bool) -> None:
    text = f"""
    func.func @main(%x: tensor<?x3xf32, #trt.dims<["n", "3"]>> {{trt.name = "x"}})
        -> (tensor<3x?xf32, #trt.dims<["3", "n"]>> {{trt.name = "y"}})
        attributes {{trt.size_bounds = {{n = array<i64: 1, {most}>}}}} {{
      %y = fused.pointwise %x {{access = [#fused.access<["d1", "d0"]>]}}
          : (tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<3x?xf32, #trt.dims<["3", "n"]>> {{
      ^bb0(%0: f32):
        fused.yield %0 : f32
      }}
      func.return %y : tensor<3x?xf32, #trt.dims<["3", "n"]>>
    }}"""
    for rows in (1, 100):
        module = check_on_threads(text, {"x": np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)})
        assert ("index_bits" in kernel(module).attributes) is is_narrow


def test_indices_are_narrow_where_everything_is_small() -> None:
    bits = kernel(sum_of_two((3, 5), '"d0", "d1"', (3, 5), "f32")).attributes["index_bits"]
    assert isinstance(bits, IntegerAttr)
    assert bits.value.data == 32
