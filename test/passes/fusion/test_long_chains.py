"""Chains of thousands of layers around views: passes that look along them look at a few."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from mlirt.dialects.context import RtContext
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import run_passes

_LAYERS = 1500


def _functions() -> list[NodeProto]:
    """A product, many functions of it, and a view that is added to them."""
    functions = [helper.make_node(("Abs", "Neg")[k % 2], [f"p{k}"], [f"p{k + 1}"]) for k in range(_LAYERS)]
    view = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Reshape", ["n", "rows"], ["v"])]
    product = helper.make_node("MatMul", ["z", "w"], ["p0"])
    return [*view, product, *functions, helper.make_node("Add", ["v", f"p{_LAYERS}"], ["y"])]


def _biases() -> list[NodeProto]:
    """Scores to which many biases are added under other dimensions, and their softmax."""
    sums = [helper.make_node("Add", [f"p{k}", "x"], [f"p{k + 1}"]) for k in range(_LAYERS)]
    scores = [helper.make_node("MatMul", ["z", "w"], ["q"]), helper.make_node("Reshape", ["q", "long"], ["p0"])]
    back = helper.make_node("Reshape", [f"p{_LAYERS}", "rows"], ["r"])
    return [*scores, *sums, back, helper.make_node("Softmax", ["r"], ["y"])]


@pytest.mark.parametrize("nodes", [_functions(), _biases()], ids=["functions", "biases"])
def test_a_long_chain_beside_a_view(nodes: list[NodeProto]) -> None:
    arrays = {"rows": np.array([6, 8]), "long": np.array([2, 3, 8]), "w": np.eye(8, dtype=np.float32)}
    shapes = {"x": (2, 3, 8), "z": (6, 8)}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    stored = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "chain", inputs, [ValueInfoProto(name="y")], stored)
    context = RtContext()
    module = import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), context)
    run_passes(module, context, "convert-trt-to-fused,sink-views")
    assert sum(op.name == "fused.pointwise" for op in module.walk()) >= _LAYERS
