"""Densely connected layers, each of which reads all tensors before it, on both targets."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_phases

LAYERS = 3


def dense(channels: int, growth: int, batch: int | str, inner: bool) -> onnx.ModelProto:
    """Each layer scales, clamps and convolves what there is, and joins its result; with `inner` a join is an output."""
    rng, weights, nodes = np.random.default_rng(0), list[onnx.TensorProto](), list[onnx.NodeProto]()

    def constant(name: str, *shape: int) -> str:
        values = rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    nodes.append(helper.make_node("Conv", ["x", constant("k", channels, 3, 3, 3)], ["f0"], pads=[1, 1, 1, 1]))
    parts, joined, count = ["f0"], "f0", channels
    for layer in range(LAYERS):
        kernel = constant(f"k{layer}", growth, count, 3, 3)
        nodes += [
            helper.make_node("Mul", [joined, constant(f"s{layer}", count, 1, 1)], [f"m{layer}"]),
            helper.make_node("Relu", [f"m{layer}"], [f"r{layer}"]),
            helper.make_node("Conv", [f"r{layer}", kernel], [f"f{layer + 1}"], pads=[1, 1, 1, 1]),
        ]
        parts, joined, count = [*parts, f"f{layer + 1}"], f"j{layer}", count + growth
        nodes.append(helper.make_node("Concat", parts, [joined], axis=1))
    nodes.append(helper.make_node("AveragePool", [joined], ["y"], kernel_shape=[2, 2], strides=[2, 2]))
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ["y", *["j1"] * inner]]
    source = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 4, 6])
    graph = helper.make_graph(nodes, "dense", [source], outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.parametrize(
    ("channels", "growth", "batch", "inner"), [(16, 16, 3, False), (6, 5, 2, False), (16, 8, "n", True)]
)
@pytest.mark.parametrize(("target", "precision"), [("cpu", "fp32"), ("cuda", "fp32"), ("cuda", "fp16")])
def test_dense_layers(target: str, precision: str, channels: int, growth: int, batch: int | str, inner: bool) -> None:
    model, ctx = dense(channels, growth, batch, inner), RtContext()
    x = np.random.default_rng(1).standard_normal((batch if isinstance(batch, int) else 2, 3, 4, 6)).astype(np.float32)
    expected = interpret(import_model(model, ctx), ctx, {"x": x})
    module = import_model(model, ctx)
    run_phases(module, ctx, None, "memory", PipelineOptions(target, precision))
    found = run_plan(module, ctx, {"x": x})
    near = 1e-4 if precision == "fp32" else 4e-3
    for name, wanted in expected.items():
        np.testing.assert_allclose(found[name], wanted, rtol=near, atol=near * np.abs(wanted).max())
