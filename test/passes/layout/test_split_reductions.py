"""Split reductions give what the whole ones give."""

from __future__ import annotations

import numpy as np
import pytest
from lowered_network import parse_module

from mlirt.dialects.interpreter import interpret
from mlirt.passes.pipeline import run_passes

REDUCTION = """
func.func @main(%x: tensor<{rows}x3x40xf32> {{trt.name = "x"}}) -> (tensor<3x40xf32> {{trt.name = "y"}}) {{
  %y = fused.reduction {kind}(%x) {{access = [#fused.access<["d2", "d0", "d1"]>], reduced = #trt.dims<["{rows}"]>}}
      : (tensor<{rows}x3x40xf32>) -> tensor<3x40xf32> {{
  ^bb0(%e: f32):
    %square = arith.mulf %e, %e : f32
    fused.yield %square : f32
  }} {{
  ^bb0(%acc: f32):
    %negated = arith.negf %acc : f32
    fused.yield %negated : f32
  }}
  func.return %y : tensor<3x40xf32>
}}"""


@pytest.mark.parametrize("kind", ["add", "max"])
@pytest.mark.parametrize(("rows", "launches"), [(4096, 3), (96, 2), (101, 1), (64, 1)])
def test_the_same_results(kind: str, rows: int, launches: int) -> None:
    module, context = parse_module(REDUCTION.format(kind=kind, rows=rows))
    inputs = {"x": np.random.default_rng(0).standard_normal((rows, 3, 40)).astype(np.float32)}
    want = interpret(module, context, inputs)["y"]
    run_passes(module, context, "split-reductions")
    assert sum(op.name == "fused.reduction" for op in module.walk()) == launches
    np.testing.assert_allclose(interpret(module, context, inputs)["y"], want, rtol=1e-6)


def test_rows_that_no_block_holds() -> None:
    text = """
    func.func @main(%x: tensor<2x300x1000xf32> {trt.name = "x"}) -> (tensor<2xf32> {trt.name = "y"}) {
      %y = fused.reduction add(%x) {access = [#fused.access<["d0", "d1", "d2"]>], reduced = #trt.dims<["300", "1000"]>}
          : (tensor<2x300x1000xf32>) -> tensor<2xf32> {
      ^bb0(%e: f32):
        fused.yield %e : f32
      } {
      ^bb0(%acc: f32):
        fused.yield %acc : f32
      }
      func.return %y : tensor<2xf32>
    }"""
    module, context = parse_module(text)
    inputs = {"x": np.random.default_rng(0).random((2, 300, 1000), np.float32)}
    want = interpret(module, context, inputs)["y"]
    held = module.clone()
    run_passes(held, context, "split-reductions")  # by the threads of a cluster
    assert sum(op.name == "fused.reduction" for op in held.walk()) == 1
    run_passes(module, context, "split-reductions{device=l4}")
    assert sum(op.name == "fused.reduction" for op in module.walk()) == 2
    np.testing.assert_allclose(interpret(module, context, inputs)["y"], want, rtol=1e-5)
