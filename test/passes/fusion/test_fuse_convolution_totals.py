"""Convolutions that pool or add up their own results: the fused networks compute what they did, on odd sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.interpreter import interpret
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.phases import pipeline_for
from mlirt.passes.pipeline import run_passes

Array = np.ndarray[Any, np.dtype[Any]]
POOL: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
# Batch, channels in and out, and what follows a convolution of 3 x 3; what the convolution does of that.
NETWORKS: dict[str, tuple[tuple[int, int, int], list[tuple[str, dict[str, Any]]], tuple[bool, bool]]] = {
    "largest": ((5, 8, 16), [("Relu", {}), ("MaxPool", POOL)], (True, False)),
    "means": ((2, 3, 24), [("Sigmoid", {}), ("AveragePool", POOL)], (True, False)),
    "global mean": ((5, 8, 17), [("Sigmoid", {}), ("GlobalAveragePool", {})], (False, True)),
    "mean of the largest": ((2, 4, 16), [("MaxPool", POOL), ("GlobalAveragePool", {})], (True, True)),
    "sum": ((2, 8, 16), [("Tanh", {}), ("ReduceSum", {"keepdims": 0})], (False, True)),
    "many channels": ((2, 16, 16), [("Sigmoid", {}), ("GlobalAveragePool", {})], (False, False)),
    "overlapping": ((2, 8, 16), [("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2]})], (False, False)),
}


@pytest.mark.parametrize("deconvolves", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str, deconvolves: bool) -> None:
    (batch, channels, count), layers, (pools, adds_up) = NETWORKS[name]
    if deconvolves:
        # Windows of 2 x 2 are the results of a pixel, single results are not; more channels have no registers.
        pools, adds_up = pools and count <= 16, adds_up and pools
    rng, context = np.random.default_rng(0), RtContext()
    shape = (channels, count, 2, 2) if deconvolves else (count, channels, 3, 3)
    weights = (rng.standard_normal(shape) / 8).astype(np.float16)
    attributes: dict[str, Any] = {"strides": [2, 2]} if deconvolves else {"pads": [1, 0, 1, 0]}
    nodes = [helper.make_node("ConvTranspose" if deconvolves else "Conv", ["x", "w"], ["v0"], **attributes)]
    for number, (kind, more) in enumerate(layers):
        nodes.append(helper.make_node(kind, [f"v{number}"], [f"v{number + 1}"], **more))
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT16, [batch, channels, 131, 75])
    y = onnx.ValueInfoProto(name=f"v{len(layers)}")
    graph = helper.make_graph(nodes, "network", [x], [y], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    module = import_model(model, context)
    inputs = {"x": rng.standard_normal((batch, channels, 131, 75)).astype(np.float16)}
    expected = interpret(module, context, inputs)
    for _, passes in pipeline_for("cuda", "fp16", last="fusion"):
        run_passes(module, context, ",".join(passes))
    (op,) = (op for op in module.walk() if isinstance(op, ConvolutionOp))
    assert (op.pooling is not None, op.totals is not None) == (pools, adds_up)
    for key, found in interpret(module, context, inputs).items():
        np.testing.assert_allclose(found, expected[key], rtol=2e-3, atol=2e-3)
