"""Split reductions give what the whole ones give."""

from __future__ import annotations

import numpy as np
import pytest
from lowered_network import parse_module

from mlirt.dialects.interpreter import interpret
from mlirt.dialects.tensor_types import dims
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
@pytest.mark.parametrize(("rows", "launches"), [(4096, 2), (640, 2), (96, 1), (101, 1), (64, 1)])
def test_the_same_results(kind: str, rows: int, launches: int) -> None:
    module, context = parse_module(REDUCTION.format(kind=kind, rows=rows))
    inputs = {"x": np.random.default_rng(0).standard_normal((rows, 3, 40)).astype(np.float32)}
    want = interpret(module, context, inputs)["y"]
    run_passes(module, context, "split-reductions")
    assert sum(op.name == "fused.reduction" for op in module.walk()) == launches
    np.testing.assert_allclose(interpret(module, context, inputs)["y"], want, rtol=1e-6)


def test_a_length_without_a_divisor_near_to_what_is_wanted_has_more_parts() -> None:
    """254 is 2 * 127: in two parts, no more than 8,192 threads walk across 32,258 pixels each."""
    text = """
    func.func @main(%x: tensor<128x254x254x64xf16> {trt.name = "x"}) -> (tensor<128x64xf16> {trt.name = "y"}) {
      %y = fused.reduction add(%x) {access = [#fused.access<["d0", "d2", "d3", "d1"]>],
          reduced = #trt.dims<["254", "254"]>} : (tensor<128x254x254x64xf16>) -> tensor<128x64xf16> {
      ^bb0(%e: f16):
        %wide = arith.extf %e : f16 to f32
        fused.yield %wide : f32
      } {
      ^bb0(%acc: f32):
        %narrow = arith.truncf %acc : f32 to f16
        fused.yield %narrow : f16
      }
      func.return %y : tensor<128x64xf16>
    }"""
    module, context = parse_module(text)
    run_passes(module, context, "split-reductions")
    parts = next(op for op in module.walk() if op.name == "fused.reduction").results[0]
    assert dims(parts.type)[0] == 127


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


@pytest.mark.parametrize(("rows", "launches"), [(16, 2), (64, 2), (128, 1), (132, 1), (140, 2), (1100, 1)])
def test_a_row_for_each_processor_is_read_in_a_loop(rows: int, launches: int) -> None:
    """Half a million elements, as no cluster holds them for so many rows; a few rows more than processors would take
    twice as long.
    """
    text = f"""
    func.func @main(%x: tensor<{rows}x528x900xf16> {{trt.name = "x"}}) -> (tensor<{rows}xf16> {{trt.name = "y"}}) {{
      %y = fused.reduction add(%x) {{access = [#fused.access<["d0", "d1", "d2"]>], reduced = #trt.dims<["528", "900"]>}}
          : (tensor<{rows}x528x900xf16>) -> tensor<{rows}xf16> {{
      ^bb0(%e: f16):
        %wide = arith.extf %e : f16 to f32
        fused.yield %wide : f32
      }} {{
      ^bb0(%acc: f32):
        %narrow = arith.truncf %acc : f32 to f16
        fused.yield %narrow : f16
      }}
      func.return %y : tensor<{rows}xf16>
    }}"""
    module, context = parse_module(text)
    run_passes(module, context, "split-reductions{device=h200}")
    assert sum(op.name == "fused.reduction" for op in module.walk()) == launches
