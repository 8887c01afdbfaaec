"""Normalisation layers as one launch each, against ONNX's own words for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from gpu_kernels import kernel_names
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_passes

RNG = np.random.default_rng(0)


def model(operator: str, shape: tuple[int, ...], element: str, parameter: int, **attributes: Any) -> onnx.ModelProto:
    """One node with a scale, and for all but RMSNormalization a bias, of `parameter` elements."""
    type_ = TensorProto.FLOAT16 if element == "f16" else TensorProto.FLOAT
    dtype = np.float16 if element == "f16" else np.float32
    names = ["g"] if operator == "RMSNormalization" else ["g", "b"]
    weights = [numpy_helper.from_array(RNG.standard_normal(parameter).astype(dtype), name) for name in names]
    node = helper.make_node(operator, ["x", *names], ["y"], **attributes)
    values = [helper.make_tensor_value_info(name, type_, ["n", *shape[1:]]) for name in ("x", "y")]
    graph = helper.make_graph([node], "network", values[:1], values[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(
    ("operator", "shape", "parameter", "attributes"),
    [
        ("LayerNormalization", (5, 7, 96), 96, {"axis": -1}),
        ("LayerNormalization", (3, 1000), 1000, {"axis": -1, "epsilon": 1e-3}),
        ("LayerNormalization", (9, 13), 13, {"axis": -1}),
        ("RMSNormalization", (5, 7, 64), 64, {"axis": -1}),
        ("InstanceNormalization", (2, 6, 9, 8), 6, {}),
        ("GroupNormalization", (2, 6, 4, 5), 6, {"num_groups": 3}),
    ],
)
def test_layers(
    operator: str, shape: tuple[int, ...], parameter: int, attributes: dict[str, Any], element: str, target: str
) -> None:
    proto = model(operator, shape, element, parameter, **attributes)
    x = RNG.standard_normal(shape).astype(np.float16 if element == "f16" else np.float32)
    ctx = RtContext()
    module = import_model(proto, ctx)
    wanted = interpret(module, ctx, {"x": x})["y"].astype(np.float64)
    if operator == "LayerNormalization" and element == "f32":
        evaluator: Any = ReferenceEvaluator(proto)
        np.testing.assert_allclose(wanted, evaluator.run(None, {"x": x})[0], rtol=1e-4, atol=1e-4)
    before = "canonicalize,convert-trt-to-fused,eliminate-dead-layers,sink-views,fuse-pointwise"
    fusion = f"{before},fuse-convolution-activation,fuse-convolution-elementwise,fuse-row-reductions"
    run_passes(module, ctx, fusion, PipelineOptions(verify_each=True))
    tolerance = 2e-2 if element == "f16" else 1e-4
    np.testing.assert_allclose(interpret(module, ctx, {"x": x})["y"], wanted, rtol=tolerance, atol=tolerance)
    mapping = "map-parallel-to-threads" if target == "cuda" else "map-parallel-to-workers"
    lowering = f"convert-fused-to-kernel{{target={target} tactic=generic}}"
    run_passes(module, ctx, lowering, PipelineOptions(verify_each=True))
    assert "normalization" in kernel_names(module)
    if target == "cuda":
        run_passes(module, ctx, mapping, PipelineOptions(verify_each=True))
    (found,) = run_plan(module, ctx, {"x": x}).values()
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=tolerance, atol=tolerance)
