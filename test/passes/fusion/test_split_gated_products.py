"""Gated units by two products: the numbers of one product, with unequal columns and batches, and two launches."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.interpreter import interpret
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.phases import pipeline_for
from mlirt.passes.pipeline import run_passes

DEPTH, WIDTH = 19, 72


def gated(activation: str, *, has_bias: bool, is_reversed: bool) -> bytes:
    """x [2, 45, DEPTH] by [DEPTH, 2 WIDTH]; one half of the columns times an activation of the other."""
    random = np.random.default_rng(0)
    stored = [
        numpy_helper.from_array(random.standard_normal((DEPTH, 2 * WIDTH)).astype(np.float32) / 4, "weights"),
        numpy_helper.from_array(random.standard_normal(2 * WIDTH).astype(np.float32), "bias"),
    ]
    value, gate = ("right", "left") if is_reversed else ("left", "right")
    nodes = [
        helper.make_node("MatMul", ["x", "weights"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["sum"]),
        helper.make_node("Split", ["sum" if has_bias else "product"], ["left", "right"], axis=-1, num_outputs=2),
        helper.make_node(activation, [gate], ["gate"]),
        helper.make_node("Mul", [value, "gate"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 45, DEPTH])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 45, WIDTH])]
    graph = helper.make_graph(nodes if has_bias else [nodes[0], *nodes[2:]], "gated", inputs, outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]).SerializeToString()


@pytest.mark.parametrize("activation", ["Sigmoid", "Gelu"])
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_numbers_and_launches(activation: str, has_bias: bool, is_reversed: bool) -> None:
    context = RtContext()
    module = import_model(gated(activation, has_bias=has_bias, is_reversed=is_reversed), context, {}, None)
    x = np.random.default_rng(1).standard_normal((2, 45, DEPTH)).astype(np.float32)
    expected = interpret(module, context, {"x": x})["y"]
    for _, passes in pipeline_for("cuda", "fp32", last="fusion"):
        run_passes(module, context, ",".join(passes))
    found = interpret(module, context, {"x": x})["y"]
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
    launches = [one for one in module.walk() if isinstance(one, FusedOp) and not isinstance(one, ViewOp)]
    assert [type(one) for one in launches] == [MatmulOp, MatmulOp]
