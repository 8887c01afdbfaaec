"""Reductions of pooled tensors, as the kernels of a whole build compute them."""

from __future__ import annotations

import numpy as np
import pytest
from lowered_network import parse_module

from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.passes.pipeline import PipelineOptions, run_phases

NETWORK = """
func.func @main(%x: tensor<2x5x9x12xELEMENT> {trt.name = "x"}) -> (tensor<RESULTxELEMENT> {trt.name = "y"}) {
  %p = trt.pooling POOL %x {window = array<i64: 2, 2>, stride = array<i64: 2, 3>} : (tensor<2x5x9x12xELEMENT>) -> tensor<2x5x4x4xELEMENT>
  %t = trt.activation relu %p : (tensor<2x5x4x4xELEMENT>) -> tensor<2x5x4x4xELEMENT>
  %y = trt.reduce KIND %t {axes = array<i64: AXES>, keep_dims = false} : (tensor<2x5x4x4xELEMENT>) -> tensor<RESULTxELEMENT>
  func.return %y : tensor<RESULTxELEMENT>
}"""  # noqa: E501


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(("axes", "result"), [("2, 3", "2x5"), ("1", "2x4x4"), ("3", "2x5x4")])
@pytest.mark.parametrize(("pool", "kind"), [("max", "sum"), ("average", "max"), ("average", "avg")])
def test_pooled_and_reduced(element: str, axes: str, result: str, pool: str, kind: str) -> None:
    given = {"ELEMENT": element, "AXES": axes, "RESULT": result, "POOL": pool, "KIND": kind}
    text = NETWORK
    for name, value in given.items():
        text = text.replace(name, value)
    x = np.random.default_rng(0).standard_normal((2, 5, 9, 12)).astype(np.float32 if element == "f32" else np.float16)
    options = PipelineOptions("cuda", "fp32" if element == "f32" else "fp16")
    module, context = parse_module(text)
    expected = interpret(module, context, {"x": x})["y"].astype(np.float64)
    run_phases(module, context, last="fusion", options=options)
    assert not any(isinstance(op, WindowOp) for op in module.walk())
    module, context = parse_module(text)
    run_phases(module, context, options=options)
    found = run_plan(module, context, {"x": x})["y"].astype(np.float64)
    np.testing.assert_allclose(found, expected, atol=(1e-5 if element == "f32" else 4e-3) * np.abs(expected).max())
