"""Reductions of other rows than those that were normalised before, as the kernels of a whole build compute them."""

from __future__ import annotations

import numpy as np
import pytest
from lowered_network import parse_module

from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.passes.pipeline import PipelineOptions, run_phases

SIZES = "5x7x3x9"
NETWORK = """
func.func @main(%x: tensor<XxE> {trt.name = "x"}) -> (tensor<RxE> {trt.name = "y"}) {
  %e = trt.constant {value = dense<1.0e-3> : tensor<1x1x1x1xE>} : tensor<1x1x1x1xE>
  %m = trt.reduce avg %x {axes = array<i64: 2, 3>, keep_dims = true} : (tensor<XxE>) -> tensor<5x7x1x1xE>
  %d = trt.elementwise sub %x, %m : (tensor<XxE>, tensor<5x7x1x1xE>) -> tensor<XxE>
  %q = trt.elementwise prod %d, %d : (tensor<XxE>, tensor<XxE>) -> tensor<XxE>
  %v = trt.reduce avg %q {axes = array<i64: 2, 3>, keep_dims = true} : (tensor<XxE>) -> tensor<5x7x1x1xE>
  %w = trt.elementwise sum %v, %e : (tensor<5x7x1x1xE>, tensor<1x1x1x1xE>) -> tensor<5x7x1x1xE>
  %s = trt.unary sqrt %w : (tensor<5x7x1x1xE>) -> tensor<5x7x1x1xE>
  %n = trt.elementwise div %d, %s : (tensor<XxE>, tensor<5x7x1x1xE>) -> tensor<XxE>
  %c = trt.activation clip %n {alpha = -1.0 : f64, beta = 1.0 : f64} : (tensor<XxE>) -> tensor<XxE>
  %y = trt.reduce KIND %c {axes = array<i64: AXES>, keep_dims = false} : (tensor<XxE>) -> tensor<RxE>
  func.return %y : tensor<RxE>
}"""


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(
    ("kind", "axes", "result"),
    [("max", "1", "5x3x9"), ("sum", "0, 1", "3x9"), ("avg", "1, 3", "5x3"), ("max", "0", "7x3x9")],
)
def test_reduction_of_other_rows(kind: str, axes: str, result: str, element: str) -> None:
    text = NETWORK.replace("KIND", kind).replace("AXES", axes).replace("XxE", f"{SIZES}x{element}")
    text = text.replace("RxE", f"{result}x{element}").replace("xE", f"x{element}")
    precision, dtype = ("fp32", np.float32) if element == "f32" else ("fp16", np.float16)
    x = (4 * np.random.default_rng(0).standard_normal((5, 7, 3, 9)) + 1).astype(dtype)
    module, context = parse_module(text)
    expected = interpret(module, context, {"x": x})["y"]
    module, context = parse_module(text)
    run_phases(module, context, last="fusion", options=PipelineOptions("cuda", precision))
    launches = [op for op in module.walk() if isinstance(op, NormalizationOp | ReductionOp)]
    assert [type(op) for op in launches] == [NormalizationOp, ReductionOp]
    module, context = parse_module(text)
    run_phases(module, context, options=PipelineOptions("cuda", precision))
    found = run_plan(module, context, {"x": x})["y"]
    np.testing.assert_allclose(found, expected, atol=1e-5 if element == "f32" else 4e-2)
