"""Conditionals (tensorrt-features.md#8.4 to 8.11): laziness, its place, nesting, and what may stand in a branch."""

from __future__ import annotations

import numpy as np
import pytest
from boundary_engines import Array, check, engines
from lowered_network import parse_module

from mlirt.dialects.xdsl_compat import module_text
from mlirt.passes.pipeline import run_passes

# In the branch that is not taken the divisor is 0.
LAZY = """
func.func @main(%x: tensor<i32>, %d: tensor<i32>) -> tensor<i32> {
  %zero = trt.constant {value = dense<0> : tensor<i32>} : tensor<i32>
  %safe = trt.elementwise greater %d, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  trt.condition %safe {conditional = @choice} : tensor<i1>
  %a = trt.if_input %x {conditional = @choice} : (tensor<i32>) -> tensor<i32>
  %q = trt.elementwise div %a, %d : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %y = trt.if_output %q, %zero {conditional = @choice} : (tensor<i32>, tensor<i32>) -> tensor<i32>
  func.return %y : tensor<i32>
}
"""
# T1 and T2, one behind the other, and the place where laziness begins.
PLACES = """
func.func @main(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {{
  trt.condition %c {{conditional = @choice}} : tensor<i1>
  {}
  %y = trt.if_output %t2, %x {{conditional = @choice}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}}
"""
INPUT = "%{} = trt.if_input %{} {{conditional = @choice}} : (tensor<4xf32>) -> tensor<4xf32>"
T1, T2 = (
    "%t{} = trt.unary {} %{{}} : (tensor<4xf32>) -> tensor<4xf32>".format(*one) for one in ((1, "exp"), (2, "neg"))
)
FIGURES = [
    ("\n".join([INPUT.format("a", "x"), T1.format("a"), T2.format("t1")]), {"exp", "neg"}),
    ("\n".join([T1.format("x"), INPUT.format("a", "t1"), T2.format("a")]), {"neg"}),
    ("\n".join([T1.format("x"), T2.format("t1")]), set[str]()),
]
LOOP_IN_BRANCH = """
func.func @main(%x: tensor<4xf32>, %c: tensor<i1>, %n: tensor<i32>) -> tensor<4xf32> {
  trt.condition %c {conditional = @choice} : tensor<i1>
  %a = trt.if_input %x {conditional = @choice} : (tensor<4xf32>) -> tensor<4xf32>
  trt.trip_limit count %n {loop = @steps} : tensor<i32>
  %r = trt.recurrence %a {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  %s = trt.elementwise sum %r, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  trt.recurrence_next %r, %s : tensor<4xf32>, tensor<4xf32>
  %p = trt.loop_output last_value %r {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  %y = trt.if_output %p, %a {conditional = @choice} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
# A sort, a product and a conversion to bytes: none of them is in the original's list of layers inside of branches.
MANY = """
func.func @main(%x: tensor<4x4xf32>, %c: tensor<i1>) -> tensor<4x4xf32> {
  %k = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  trt.condition %c {conditional = @choice} : tensor<i1>
  %a = trt.if_input %x {conditional = @choice} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %v, %i = trt.topk max %a {k = 4 : i64, axis = 1 : i64} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xi64>)
  %m = trt.matrix_multiply %v, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %q = trt.quantize %m, %k : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xi8>
  %d = trt.dequantize %q, %k : (tensor<4x4xi8>, tensor<f32>) -> tensor<4x4xf32>
  %y = trt.if_output %d, %a {conditional = @choice} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %y : tensor<4x4xf32>
}
"""


def number(value: int) -> Array:
    return np.array(value, np.int32)


def test_the_branch_that_is_not_taken_is_not_computed() -> None:
    """tensorrt-features.md#8.4: integers divided by 0 would end the process on the CPU."""
    runs = engines(LAZY)
    for divisor, expected in ((4, 3), (0, 0), (5, 2)):
        check(runs, {"x": number(12), "d": number(divisor)}, [number(expected)])


@pytest.mark.parametrize(("body", "lazy"), FIGURES, ids="ABC")
def test_laziness_begins_at_the_input(body: str, lazy: set[str]) -> None:
    """tensorrt-features.md#8.5, figures A, B and C: behind T1 the input leaves T1 eager, without one all is eager."""
    module, context = parse_module(PLACES.format(body))
    run_passes(module, context, "infer-nesting,convert-loops-to-scf,convert-conditionals-to-scf")
    outside, _, inside = module_text(module).partition("scf.if")
    for kind in ("exp", "neg"):
        assert (f"trt.unary {kind}" in inside) == (kind in lazy)
        assert (f"trt.unary {kind}" in outside) == (kind not in lazy)


def test_a_loop_in_a_branch() -> None:
    """tensorrt-features.md#8.8; test_a_branch_in_a_loop has the other way round."""
    runs = engines(LOOP_IN_BRANCH)
    x = np.arange(4, dtype=np.float32)
    for condition, count, factor in ((True, 3, 8), (False, 3, 1), (True, 0, 1)):
        check(runs, {"x": x, "c": np.array(condition), "n": number(count)}, [x * factor])


def test_all_layers_may_stand_in_a_branch() -> None:
    """tensorrt-features.md#8.11."""
    runs = engines(MANY)
    x = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    product = -np.sort(-x, axis=1) @ x
    rounded = np.clip(np.rint(product / 0.5), -128, 127) * 0.5
    for condition, expected in ((True, rounded), (False, x)):
        check(runs, {"x": x, "c": np.array(condition)}, [expected.astype(np.float32)])
