"""Reductions of rows that read another reduction of the same rows, such as log-sum-exp, as one launch for a GPU."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_kernels import check_on_threads, kernel_names
from lowered_network import parse_module

from mlirt.dialects.interpreter import interpret
from mlirt.passes.pipeline import run_passes

_FUSION = "convert-trt-to-fused,fuse-pointwise,fuse-convolution-activation,fuse-convolution-elementwise"


def log_sum_exp(shape: tuple[int, ...], axis: int, element: str) -> str:
    """The layers of `relu(max + log(sum(exp(x - max))))` along an axis."""
    row = (*shape[:axis], 1, *shape[axis + 1 :])
    x, m = (f"tensor<{''.join(f'{size}x' for size in of)}{element}>" for of in (shape, row))
    kept = f"axes = array<i64: {axis}>, keep_dims = true"
    return f"""
    func.func @main(%x: {x} {{trt.name = "x"}}) -> ({m} {{trt.name = "y"}}) {{
      %m = trt.reduce max %x {{{kept}}} : ({x}) -> {m}
      %d = trt.elementwise sub %x, %m : ({x}, {m}) -> {x}
      %e = trt.unary exp %d : ({x}) -> {x}
      %s = trt.reduce sum %e {{{kept}}} : ({x}) -> {m}
      %l = trt.unary log %s : ({m}) -> {m}
      %t = trt.elementwise sum %l, %m : ({m}, {m}) -> {m}
      %y = trt.activation relu %t : ({m}) -> {m}
      func.return %y : {m}
    }}"""


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 1000), 1), ((2, 24, 5, 7), 1), ((2, 20000), 1), ((5, 7, 6), 2), ((1, 9), 1), ((40, 33), 0)]
)
def test_log_sum_exp_is_one_launch(shape: tuple[int, ...], axis: int, element: str) -> None:
    x = np.random.default_rng(0).normal(0, 3, shape).astype(np.float16 if element == "f16" else np.float32)
    module, context = parse_module(log_sum_exp(shape, axis, element))
    wanted = interpret(module, context, {"x": x})["y"].astype(np.float64)
    run_passes(module, context, f"{_FUSION},fuse-row-reductions")
    tolerance = 4e-3 if element == "f16" else 1e-5
    found = interpret(module, context, {"x": x})["y"].astype(np.float64)
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    lowered = check_on_threads(str(module), {"x": x}, tolerance=tolerance)
    assert kernel_names(lowered) == ["normalization"]


def test_what_follows_the_reduced_rows_is_computed_with_them() -> None:
    text = """
    func.func @main(%x: tensor<6x40xf32> {trt.name = "x"}) -> (tensor<6x1xf32> {trt.name = "y"}) {
      %n = fused.normalization %x {access = [#fused.access<["d0", "d2"]>], axes = array<i64: 2>,
          kinds = [#fused<reduction_kind max>], reduced = #trt.dims<["40"]>} : (tensor<6x40xf32>) -> tensor<6x1xf32> {
      ^bb0(%0: f32, %1: f32):
        fused.yield %1 : f32
      } {
      ^bb0(%2: f32):
        fused.yield %2 : f32
      } {
      ^bb0(%3: f32, %4: f32):
        fused.yield %3 : f32
      }
      %y = fused.pointwise %n {access = [#fused.access<["d0", "d1"]>]} : (tensor<6x1xf32>) -> tensor<6x1xf32> {
      ^bb0(%e: f32):
        %s = arith.negf %e : f32
        fused.yield %s : f32
      }
      func.return %y : tensor<6x1xf32>
    }"""
    x = np.random.default_rng(0).standard_normal((6, 40), np.float32)
    module, context = parse_module(text)
    run_passes(module, context, "fuse-row-elementwise")
    assert kernel_names(check_on_threads(str(module), {"x": x})) == ["normalization"]
    np.testing.assert_array_equal(interpret(module, context, {"x": x})["y"], -x.max(1, keepdims=True))
