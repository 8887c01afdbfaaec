"""Register tiles, workers and the matrix unit of a CPU: the interpreter gives what the compiled words give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu_kernel_runs import compile_module, kernels_in
from kernel_text import parse_kernel

from mlirt.dialects.kernel.interpreter import run_kernel

NUMBERS = np.random.default_rng(1)
TILE = "vector<3x2x8x{t}>"
PLACES = "".join(f"%c{n} = arith.constant {n} : index\n" for n in (1, 2, 3, 5, 20, 40))
# What is made of the tile %t of type T by memory %x and %w, and what its elements are.
UPDATES = {
    "multiply_add": ("%x[%c2] rows %c20 step %c1, %w[%c3] {depth = 4 : i64} : T, X, W", "f32"),
    "multiply_add first": ("%x[%c2] rows %c20 first %c2 step %c3, %w[%c3] {depth = 4 : i64} : T, X, W", "f32"),
    "multiply_add_lanes": ("%x[%c2] rows %c20, %w[%c3] : T, X, W", "f32"),
    "multiply_add_lanes first": ("%x[%c2] rows %c20 first %c1, %w[%c3] : T, X, W", "f32"),
    "dot_add": ("%x[%c2] rows %c20, %w[%c3] {depth = 2 : i64, last = 3 : i64} : T, X, W", "i32"),
    "dot_add signed": ("%x[%c2] rows %c20, %w[%c3] {depth = 2 : i64, offset = 128 : i64} : T, X, W", "i32"),
    "dot_add first": ("%x[%c2] rows %c20 first %c2, %w[%c3] {depth = 3 : i64} : T, X, W", "i32"),
    **{
        f"combine {kind}{first}": (f"%x[%c2] rows %c20{first}{' %c2' * bool(first)} : T, X", "f32")
        for kind in ("add", "mul", "max", "min")
        for first in ("", " first")
    },
}
LOADS = {
    "load": "kernel.tile_load %x[%c2] rows %c20 : X -> T",
    "load valid": "kernel.tile_load %x[%c2] rows %c20 valid %c5 : X -> T",
    "load_patch": "kernel.tile_load_patch %x[%c2] rows %c40 columns %c20 : X -> T",
    "load_patch only": "kernel.tile_load_patch %x[%c2] rows %c40 columns %c20 only %c2 by %c1 : X -> T",
}
STORE = """
  kernel.tile_for_each %r : {r} {{
  ^bb0(%v: {t}, %i: index, %j: index, %lane: index):
    kernel.store %v, %y[%i, %j, %lane] strides [{row}, {lanes}, 1] : {t}, memref<?x{t}>
    kernel.yield
  }}
  kernel.return
}}"""


def kernel_text(body: str, t: str, result: tuple[int, int, int], memory: tuple[str, str]) -> str:
    tile = f"vector<{'x'.join(map(str, result))}x{t}>"
    head = f"kernel.func @k(%x: memref<?x{memory[0]}>, %w: memref<?x{memory[1]}>, %y: memref<?x{t}>) {{\n{PLACES}"
    store = STORE.format(r=tile, t=t, row=result[1] * result[2], lanes=result[2])
    return head + body + store


def both(text: str, x: Any, w: Any, count: int, dtype: str) -> tuple[Any, Any]:
    """What the interpreter and the compiled kernel write."""
    meant, made = np.zeros(count, dtype), np.zeros(count, dtype)
    (kernel,) = kernels_in(text)
    run_kernel(kernel, [x, w, meant])
    compile_module(text, 256)["k"](x, w, made, workers=1)
    assert np.any(made)
    return meant, made


def _update(name: str, syntax: str, t: str) -> str:
    word, _, rest = name.partition(" ")
    kind = f" {rest.split()[0]}" if word == "combine" else ""
    value = "5.0" if t == "f32" else "5"
    return f"""  %start = arith.constant {value} : {t}
  %t = kernel.tile_fill %start : {t} -> T
  %r = kernel.tile_{word}{kind} %t, {syntax} -> T
"""


@pytest.mark.parametrize("name", UPDATES)
def test_a_tile_takes_up_what_lies_in_memory(name: str) -> None:
    syntax, t = UPDATES[name]
    memory = ("f32", "f32") if t == "f32" else ("ui8", "i8")
    body = _update(name, syntax, t).replace("T", TILE.format(t=t))
    body = body.replace("X", f"memref<?x{memory[0]}>").replace("W", f"memref<?x{memory[1]}>")
    dtypes = ("float32", "float32") if t == "f32" else ("uint8", "int8")
    x, w = (NUMBERS.integers(0, 100, 400).astype(dtype) for dtype in dtypes)
    text = kernel_text(body, t, (3, 2, 8), memory)
    # Sums of whole numbers below 2**24: every order of additions gives the same.
    np.testing.assert_array_equal(*both(text, x, w, 48, "float32" if t == "f32" else "int32"))


@pytest.mark.parametrize(("first", "step"), [("", 1), (" first %c2", 1), ("", 3)])
def test_factors_are_rounded_to_halves(first: str, step: int) -> None:
    """Whole numbers between 2048 and 4096 become even, larger ones multiples of four."""
    syntax = f"%x[%c2] rows %c20{first} step %c{step}, %w[%c3] {{depth = 4 : i64, halves}} : T, X, W"
    body = _update("multiply_add", syntax, "f32").replace("T", TILE.format(t="f32"))
    body = body.replace("X", "memref<?xf32>").replace("W", "memref<?xf16>")
    x, w = NUMBERS.integers(2048, 8000, 400).astype(np.float32), NUMBERS.integers(-9, 9, 400).astype(np.float16)
    text = kernel_text(body, "f32", (3, 2, 8), ("f32", "f16"))
    meant, made = both(text, x, w, 48, "float32")
    np.testing.assert_array_equal(meant, made)
    whole = both(text, x.astype(np.float16).astype(np.float32), w, 48, "float32")[0]
    np.testing.assert_array_equal(meant, whole)
    assert np.any(meant != both(text.replace(", halves", ""), x, w, 48, "float32")[0])


@pytest.mark.parametrize("name", LOADS)
def test_a_tile_comes_from_memory(name: str) -> None:
    body = f"  %r = {LOADS[name]}\n".replace("T", TILE.format(t="f32")).replace("X", "memref<?xf32>")
    x = NUMBERS.standard_normal(400).astype(np.float32)
    np.testing.assert_array_equal(*both(kernel_text(body, "f32", (3, 2, 8), ("f32", "f32")), x, x, 48, "float32"))


@pytest.mark.parametrize("limits", ["", "only %c3 ", "valid %c5 ", "only %c3 valid %c5 "])
def test_a_tile_comes_from_memory_transposed(limits: str) -> None:
    body = f"  %r = kernel.tile_load_transposed %x[%c2] rows %c20 {limits}: memref<?xf32> -> vector<8x1x8xf32>\n"
    x = NUMBERS.standard_normal(400).astype(np.float32)
    np.testing.assert_array_equal(*both(kernel_text(body, "f32", (8, 1, 8), ("f32", "f32")), x, x, 64, "float32"))


def test_a_tile_is_transformed_and_pooled_and_mapped() -> None:
    body = """  %t = kernel.tile_load %x[%c2] rows %c20 : memref<?xf32> -> vector<2x2x8xf32>
  %d = kernel.tile_transform %t {matrix = array<f64: 1.0, 1.0, 0.0, 2.0, -1.0, 0.0, 1.0, 1.0>}
    : vector<2x2x8xf32> -> vector<4x4x8xf32>
  %m = kernel.tile_map %d : vector<4x4x8xf32> -> vector<4x4x8xf32> {
  ^bb0(%v: f32, %i: index, %j: index, %lane: index):
    %u = arith.negf %v : f32
    kernel.yield %u : f32
  }
  %into = kernel.tile_load %w[%c2] rows %c20 : memref<?xf32> -> vector<2x1x8xf32>
  %r = kernel.tile_pool max %m into %into {window = array<i64: 2, 4>}
    : vector<4x4x8xf32>, vector<2x1x8xf32> -> vector<2x1x8xf32>
"""
    x, w = (NUMBERS.integers(-50, 50, 400).astype(np.float32) for _ in range(2))
    np.testing.assert_array_equal(*both(kernel_text(body, "f32", (2, 1, 8), ("f32", "f32")), x, w, 16, "float32"))


def test_one_worker_does_all_tasks_with_memory_of_its_own() -> None:
    text = """
kernel.func @k(%x: memref<?xf32>, %w: memref<?xf32>, %y: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  %n = arith.constant 7 : index
  %first, %last = kernel.worker_share %n
  %slot = kernel.worker_slot %n, %n
  %m = kernel.worker_memory {elements = 16 : i64} : memref<?xf32>
  scf.for %i = %first to %last step %c1 {
    kernel.prefetch %x[%i] : memref<?xf32>
    %v = kernel.load %x[%i] strides [1] : memref<?xf32> -> f32
    kernel.store %v, %m[%slot] strides [1] : f32, memref<?xf32>
    %u = kernel.load %m[%slot] strides [1] : memref<?xf32> -> f32
    kernel.store %u, %y[%i] strides [1] : f32, memref<?xf32>
  }
  kernel.return
}"""
    x = NUMBERS.standard_normal(7).astype(np.float32)
    meant, made = both(text, x, x, 7, "float32")
    np.testing.assert_array_equal(meant, x)
    np.testing.assert_array_equal(made, x)


def test_the_matrix_unit_gives_sums_of_products() -> None:
    rows, columns, pixels, depth, step = 2, 2, 5, 12, 16
    x = NUMBERS.integers(0, 256, 400).astype(np.uint8)
    w = NUMBERS.integers(-128, 128, 800).astype(np.int8)
    y = np.zeros(rows * pixels * columns * 16, np.int32)
    shape = f"rows = {rows} : i64, columns = {columns} : i64, pixels = {pixels} : i64"
    kernel = parse_kernel(f"""
    kernel.func @k(%x: memref<?xui8>, %w: memref<?xi8>, %y: memref<?xi32>) {{
      %at = arith.constant 3 : index
      %step = arith.constant {step} : index
      kernel.amx_begin {{{shape}, depth = {depth} : i64}}
      kernel.amx_clear {{count = {rows * columns} : i64}}
      kernel.amx_dot_add %x[%at] step %step, %w[%at] {{{shape}}} : memref<?xui8>, memref<?xi8>
      kernel.amx_store %y {{{shape}}} : memref<?xi32>
      kernel.amx_end
      kernel.return
    }}""")
    run_kernel(kernel, [x, w, y], updated=[2])
    found = y.reshape(rows * pixels, columns * 16)
    b = np.arange(depth)
    for pixel, lane in np.ndindex(found.shape):
        weights = w[3 + (b // 4 * columns * 16 + lane) * 4 + b % 4].astype(int)
        assert found[pixel, lane] == (x[3 + pixel * step + b].astype(int) * weights).sum()
