"""Reductions behind a softmax or a normalisation, as the kernels of a whole build compute them."""

from __future__ import annotations

import numpy as np
import pytest
from lowered_network import parse_module

from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.passes.pipeline import PipelineOptions, run_phases

NETWORK = """
func.func @main(%x: tensor<2x16x5x6xf32> {trt.name = "x"}) -> (tensor<2x5x6xf32> {trt.name = "y"}) {
  %b = trt.constant {value = dense<NUMBERS> : tensor<1x16x1x1xf32>} : tensor<1x16x1x1xf32>
  %p = trt.softmax %x {axis = AXIS : i64} : (tensor<2x16x5x6xf32>) -> tensor<2x16x5x6xf32>
  %d = trt.elementwise sub %p, %b : (tensor<2x16x5x6xf32>, tensor<1x16x1x1xf32>) -> tensor<2x16x5x6xf32>
  %t = trt.activation tanh %d : (tensor<2x16x5x6xf32>) -> tensor<2x16x5x6xf32>
  %y = trt.reduce KIND %t {axes = array<i64: 1>, keep_dims = false} : (tensor<2x16x5x6xf32>) -> tensor<2x5x6xf32>
  func.return %y : tensor<2x5x6xf32>
}"""


@pytest.mark.parametrize("kind", ["max", "sum", "avg"])
@pytest.mark.parametrize("axis", [1, 2])
def test_softmax_and_reduction(kind: str, axis: int) -> None:
    rng = np.random.default_rng(0)
    numbers = str(rng.standard_normal((1, 16, 1, 1)).round(3).tolist())
    text = NETWORK.replace("NUMBERS", numbers).replace("KIND", kind).replace("AXIS", str(axis))
    x = (4 * rng.standard_normal((2, 16, 5, 6))).astype(np.float32)
    module, context = parse_module(text)
    expected = interpret(module, context, {"x": x})["y"]
    run_phases(module, context, last="fusion", options=PipelineOptions("cuda"))
    rows = [op for op in module.walk() if isinstance(op, NormalizationOp)]
    assert [bool(op.reduced.dims()) for op in rows] == ([True] if axis == 1 else [])
    module, context = parse_module(text)
    run_phases(module, context, options=PipelineOptions("cuda"))
    found = run_plan(module, context, {"x": x})["y"]
    np.testing.assert_allclose(found, expected, atol=1e-5)
