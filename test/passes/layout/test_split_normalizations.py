"""Split normalizations give what the whole ones give, with their reductions split in turn."""

from __future__ import annotations

import numpy as np
import pytest
from lowered_network import parse_module

from mlirt.dialects.interpreter import interpret
from mlirt.passes.pipeline import run_passes

TEXT = """
func.func @main(%x: tensor<{sizes}xf32, #trt.dims<{dims}, order = {order}>> {{trt.name = "x"}},
    %s: tensor<8xf32> {{trt.name = "s"}})
    -> (tensor<{sizes}xf32, #trt.dims<{dims}, order = {order}>> {{trt.name = "y"}}) {{
  %y = fused.normalization %x, %s {{access = [#fused.access<{whole}>, #fused.access<["d1"]>], axes = array<i64: {axes}>,
      kinds = [#fused<reduction_kind add>, #fused<reduction_kind max>]}}
      : (tensor<{sizes}xf32, #trt.dims<{dims}, order = {order}>>, tensor<8xf32>)
      -> tensor<{sizes}xf32, #trt.dims<{dims}, order = {order}>> {{
  ^bb0(%e: f32, %f: f32, %mean: f32, %most: f32):
    %d = arith.subf %e, %mean : f32
    %q = arith.divf %d, %most : f32
    fused.yield %q : f32
  }} {{
  ^bb0(%e: f32, %f: f32):
    fused.yield %e : f32
  }} {{
  ^bb0(%sum: f32, %e: f32, %f: f32):
    %m = arith.mulf %sum, %f : f32
    fused.yield %m : f32
  }} {{
  ^bb0(%e: f32, %f: f32, %mean: f32):
    %d = arith.subf %e, %mean : f32
    %square = arith.mulf %d, %d : f32
    fused.yield %square : f32
  }} {{
  ^bb0(%most: f32, %e: f32, %f: f32, %mean: f32):
    %m = arith.addf %most, %f : f32
    %n = arith.addf %m, %mean : f32
    fused.yield %n : f32
  }}
  func.return %y : tensor<{sizes}xf32, #trt.dims<{dims}, order = {order}>>
}}"""
IMAGE, VOLUME = (1, 8, 260, 260), (1, 8, 80, 40, 40)


def text_of(shape: tuple[int, ...]) -> str:
    rank = len(shape)
    named = ", ".join(f'"{size}"' for size in shape)
    return TEXT.format(
        sizes="x".join(map(str, shape)),
        dims=f"[{named}]",
        order=str([0, *range(2, rank), 1]),
        whole="[" + ", ".join(f'"d{axis}"' for axis in range(rank)) + "]",
        axes=", ".join(map(str, range(2, rank))),
    )


@pytest.mark.parametrize(("shape", "reductions"), [(IMAGE, 4), (VOLUME, 6)])
def test_the_same_results(shape: tuple[int, ...], reductions: int) -> None:
    module, context = parse_module(text_of(shape))
    random = np.random.default_rng(0)
    scale = np.full(8, 1 / np.prod(shape[2:]), np.float32)
    inputs = {"x": random.standard_normal(shape).astype(np.float32), "s": scale}
    want = interpret(module, context, inputs)["y"]
    run_passes(module, context, "split-normalizations{device=a100},split-reductions{device=a100}")
    names = [op.name for op in module.walk()]
    assert names.count("fused.normalization") == 0
    assert names.count("fused.reduction") == reductions
    np.testing.assert_allclose(interpret(module, context, inputs)["y"], want, rtol=1e-5, atol=1e-5)


def test_clusters_hold_rows_that_blocks_do_not() -> None:
    """Eight rows of 67,600 elements: two blocks of a cluster have one in their registers."""
    module, context = parse_module(text_of(IMAGE))
    run_passes(module, context, "split-normalizations{device=h200}")
    assert any(op.name == "fused.normalization" for op in module.walk())
