"""What the passes on branches and loops do changes no result."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pytest
from lowered_network import parse_module

from mlirt.dialects.interpreter import interpret
from mlirt.passes.pipeline import run_passes
from mlirt.passes.remarks import Remarks, recording

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

RECURRENT = """
func.func @main(%x: tensor<6x1x8xf32>, %w: tensor<8x4xf32>, %r: tensor<4x4xf32>, %z: tensor<1x4xf32>, %n: tensor<i64>,
    %c: tensor<i1>) -> (tensor<1x4xf32>, tensor<1x8xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %t = tensor.extract %n[] : tensor<i64>
  %count = arith.index_cast %t : i64 to index
  %h = tensor.extract %c[] : tensor<i1>
  %start = trt.constant {value = dense<0.0> : tensor<1x8xf32>} : tensor<1x8xf32>
  %y = scf.for %i = %zero to %count step %one iter_args(%a = %z) -> (tensor<1x4xf32>) {
    %k = arith.index_cast %i : index to i64
    %j = tensor.from_elements %k : tensor<i64>
    %e = trt.gather %x, %j : (tensor<6x1x8xf32>, tensor<i64>) -> tensor<1x8xf32>
    %p = trt.matrix_multiply %e, %w : (tensor<1x8xf32>, tensor<8x4xf32>) -> tensor<1x4xf32>
    %s = trt.unary sin %r : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %q = trt.matrix_multiply %a, %s : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    %b = trt.elementwise sum %p, %q : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    %d = scf.if %h -> (tensor<1x4xf32>) {
      %g = trt.activation tanh %b : (tensor<1x4xf32>) -> tensor<1x4xf32>
      scf.yield %g : tensor<1x4xf32>
    } else {
      scf.yield %b : tensor<1x4xf32>
    }
    scf.yield %d : tensor<1x4xf32>
  }
  %m = scf.for %i = %zero to %count step %one iter_args(%a = %start) -> (tensor<1x8xf32>) {
    %k = arith.index_cast %i : index to i64
    %j = tensor.from_elements %k : tensor<i64>
    %e = trt.gather %x, %j : (tensor<6x1x8xf32>, tensor<i64>) -> tensor<1x8xf32>
    %b = trt.elementwise max %a, %e : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
    scf.yield %b : tensor<1x8xf32>
  }
  func.return %y, %m : tensor<1x4xf32>, tensor<1x8xf32>
}
"""
PASSES = [
    "simplify-carried-values",
    *("hoist-loop-invariants", "hoist-input-products", "fuse-loops", "convert-if-to-select", "expand-counted-loops"),
    "hoist-loop-invariants,hoist-input-products,fuse-loops,convert-if-to-select,expand-counted-loops,cse,dce",
]


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("count", [0, 1, 6])
def test_results(passes: str, count: int) -> None:
    """tensorrt-features.md#7.19."""
    generator = np.random.default_rng(count)
    shapes = {"x": (6, 1, 8), "w": (8, 4), "r": (4, 4), "z": (1, 4)}
    feeds: dict[str, Array] = {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    for condition in (True, False):
        feeds |= {"n": np.array(count), "c": np.array(condition)}
        module, ctx = parse_module(RECURRENT)
        expected = interpret(module, ctx, feeds)
        run_passes(module, ctx, passes)
        for name, array in interpret(module, ctx, feeds).items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("iterations", [0, 1, 3])
def test_unrolled(iterations: int) -> None:
    text = RECURRENT.replace(
        "  %count = arith.index_cast %t : i64 to index\n", f"  %count = arith.constant {iterations} : index\n"
    )
    generator = np.random.default_rng(iterations)
    shapes = {"x": (6, 1, 8), "w": (8, 4), "r": (4, 4), "z": (1, 4)}
    feeds: dict[str, Array] = {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    feeds |= {"n": np.array(0), "c": np.array(True)}
    module, ctx = parse_module(text)
    expected = interpret(module, ctx, feeds)
    run_passes(module, ctx, "unroll-loops,fold-known-branches")
    assert "scf.for" not in {op.name for op in module.walk()}
    for name, array in interpret(module, ctx, feeds).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-6)


SAID = {
    "fuse-loops": ["applied: scf.for"],
    "hoist-loop-invariants": ["applied: scf.for", "declined: scf.for: all layers inside depend on the iteration"],
    "forward-collected-slices": ["declined: scf.for: nothing that it collects has all slices of a tensor"] * 2,
    "recognize-recurrent-loops": [f"declined: scf.for: {op} is no part of a cell" for op in ("scf.if", "max")],
    "expand-counted-loops": ["applied: scf.while"] * 2,
}


@pytest.mark.parametrize("name", SAID)
def test_each_says_what_it_did(name: str) -> None:
    module, ctx = parse_module(RECURRENT)
    remarks = Remarks()
    with recording(remarks):
        run_passes(module, ctx, name)
    assert remarks.text().splitlines() == [f"remark: {name}: {one}" for one in SAID[name]]
