"""A network whose branches write parts of joined tensors and meet again."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def branching_network(stages: int = 3, branches: int = 4) -> onnx.ModelProto:
    """In each stage convolutions of one tensor, some after another one, are joined, and added to a sum of them."""
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []

    def convolution(name: str, source: str, inputs: int, outputs: int, size: int) -> str:
        values = rng.standard_normal((outputs, inputs, size, size)) * np.sqrt(1 / (inputs * size * size))
        weights.append(numpy_helper.from_array(values.astype(np.float32), f"{name}_w"))
        pads = [size // 2] * 4
        nodes.append(helper.make_node("Conv", [source, f"{name}_w"], [f"{name}_c"], pads=pads, name=name))
        nodes.append(helper.make_node("Relu", [f"{name}_c"], [name], name=f"{name}_relu"))
        return name

    value, width = "x", 8 * branches
    for stage in range(stages):
        parts: list[str] = []
        for branch in range(branches):
            first = convolution(f"s{stage}b{branch}", value, width, 8, 1 + 2 * (branch % 2))
            parts.append(convolution(f"s{stage}d{branch}", first, 8, 8, 3) if branch >= branches // 2 else first)
        nodes.append(helper.make_node("Concat", parts, [f"s{stage}"], axis=1, name=f"join{stage}"))
        nodes.append(helper.make_node("Add", [f"s{stage}", value], [f"a{stage}"], name=f"add{stage}"))
        value = f"a{stage}"
    graph = helper.make_graph(
        nodes,
        "branching",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, width, 20, 20])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, [1, width, 20, 20])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


__all__ = ["branching_network"]
