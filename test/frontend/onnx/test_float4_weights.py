"""Weights of 4-bit floats with scales of blocks of 16: packed in products on GPUs, numbers on processors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from gpu_kernels import Array
from onnx import TensorProto, helper, numpy_helper

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_phases

DEPTH, COLUMNS, BLOCK = 80, 96, 16


def network(rows: int, *, two_scales: bool, axis: int) -> tuple[onnx.ModelProto, dict[str, Array], Array]:
    """A product by 4-bit floats, whose scales may be 8-bit floats with a scale for all; what it gives."""
    rng = np.random.default_rng(rows)
    shape = (DEPTH, COLUMNS) if axis == 0 else (COLUMNS, DEPTH)
    blocks = tuple(size // BLOCK if one == axis else size for one, size in enumerate(shape))
    codes = rng.integers(0, 16, shape).astype(np.uint8)
    pairs = codes.reshape(-1, 2)
    stored = (pairs[:, 0] | pairs[:, 1] << 4).astype(np.uint8)
    numbers: Any = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    scales: Any = rng.uniform(0.5, 2, blocks).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    whole = np.float32(0.125 if two_scales else 1)
    weights = numbers * np.repeat(scales * whole, BLOCK, axis=axis)
    constants = [helper.make_tensor("w", TensorProto.FLOAT4E2M1, shape, stored.tobytes(), raw=True)]
    nodes = list[onnx.NodeProto]()
    if two_scales:
        raw = scales.astype(ml_dtypes.float8_e4m3fn).tobytes()
        constants += [helper.make_tensor("s8", TensorProto.FLOAT8E4M3FN, blocks, raw, raw=True)]
        constants += [numpy_helper.from_array(np.array(whole), "all")]
        nodes.append(helper.make_node("DequantizeLinear", ["s8", "all"], ["s"]))
    else:
        constants += [numpy_helper.from_array(scales, "s")]
    nodes.append(helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=axis, block_size=BLOCK))
    right = "d"
    if axis == 1:
        nodes.append(helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0]))
        right = "t"
    nodes.append(helper.make_node("MatMul", ["x", right], ["y"]))
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, size])
        for name, size in (("x", DEPTH), ("y", COLUMNS))
    ]
    graph = helper.make_graph(nodes, "float4", values[:1], values[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    x = rng.standard_normal((rows, DEPTH)).astype(np.float32)
    return model, {"x": x}, x.astype(np.float64) @ (weights if axis == 0 else weights.T)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("two_scales", [False, True])
@pytest.mark.parametrize(("target", "rows"), [("cuda", 3), ("cuda", 40), ("cpu", 5)])
def test_products(target: str, rows: int, two_scales: bool, axis: int) -> None:
    """A few rows read the codes; for more of them, and on processors, weights are numbers."""
    model, inputs, want = network(rows, two_scales=two_scales, axis=axis)
    context = RtContext()
    module = import_model(model, context)
    np.testing.assert_allclose(interpret(module, context, inputs)["y"], want, rtol=1e-5, atol=1e-4)
    run_phases(module, context, last="fusion", options=PipelineOptions(target, "fp32"))
    assert ("fused.packed_matmul" in str(module)) == (target == "cuda" and rows < 8)
    assert ("xui8>" in str(module)) == (target == "cuda")
    found = interpret(module, context, inputs)["y"]
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-4)


def test_kernels_of_a_few_rows() -> None:
    model, inputs, want = network(3, two_scales=True, axis=0)
    context = RtContext()
    module = import_model(model, context)
    run_phases(module, context, options=PipelineOptions("cuda", "fp32"))
    np.testing.assert_allclose(run_plan(module, context, inputs)["y"], want, rtol=1e-5, atol=1e-4)
