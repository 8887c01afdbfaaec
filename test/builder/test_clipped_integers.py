"""Integers that are clipped, then divided: their bounds are facts about data, and no demand on a launch."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import mlirt


@pytest.mark.parametrize("length", [12, "n"])
@pytest.mark.parametrize("divisor", ["six", "clipped"])
@pytest.mark.parametrize("operator", ["Mod", "Div"])
def test_clipped_integers_are_divided(operator: str, divisor: str, length: int | str) -> None:
    nodes = [
        helper.make_node("Clip", ["x", "least", "six"], ["clipped_x"]),
        helper.make_node("Max", ["clipped_x", "one"], ["clipped"]),
        helper.make_node(operator, ["clipped_x", divisor], ["y"]),
    ]
    numbers = {"least": -6, "six": 6, "one": 1}
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.INT32, [length])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [length])],
        [helper.make_tensor(name, TensorProto.INT32, [], [number]) for name, number in numbers.items()],
    )
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    x = np.arange(-8, 4, dtype=np.int32)
    by = np.maximum(np.clip(x, -6, 6), 1) if divisor == "clipped" else 6
    clipped = np.clip(x, -6, 6)
    want = np.mod(clipped, by) if operator == "Mod" else np.trunc(clipped / by).astype(np.int32)
    found = mlirt.compile(model.SerializeToString(), "cpu").run({"x": x})["y"]
    np.testing.assert_array_equal(found, want)
