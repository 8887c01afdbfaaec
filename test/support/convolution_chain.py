"""Networks of convolutions alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def chain(image: Sequence[int], channels: Sequence[int], settings: dict[str, Any]) -> onnx.ModelProto:
    """Convolutions of 3 x 3 with a bias and a rectifier, one after the other."""
    noise, last = np.random.default_rng(0), "x"
    nodes, stored = list[onnx.NodeProto](), list[onnx.TensorProto]()
    groups = settings.get("group", 1)
    for k, (before, after) in enumerate(zip([image[1], *channels], channels, strict=False)):
        shape = (after, before // groups, 3, 3)
        weights = (noise.standard_normal(shape) / np.sqrt(shape[1] * 9)).astype(np.float32)
        stored.append(numpy_helper.from_array(weights, f"w{k}"))
        stored.append(numpy_helper.from_array(noise.standard_normal(after).astype(np.float32), f"b{k}"))
        inputs = [last, f"w{k}", f"b{k}"]
        nodes.append(helper.make_node("Conv", inputs, [f"c{k}"], name=f"conv{k}", pads=[1, 1, 1, 1], **settings))
        nodes.append(helper.make_node("Relu", [f"c{k}"], [f"y{k}"], name=f"relu{k}"))
        last = f"y{k}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, image)
    y = helper.make_tensor_value_info(last, TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "chain", [x], [y], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
