"""A small image classifier with every kind of layer that convolutional networks have."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def network(batch: int | str = 1) -> onnx.ModelProto:
    """Convolutions with batch normalization and a residual, pooling, a classifier."""
    rng = np.random.default_rng(0)

    def weight(name: str, *shape: int) -> onnx.TensorProto:
        scale = np.sqrt(2 / max(1, int(np.prod(shape[1:]))))
        return numpy_helper.from_array((rng.standard_normal(shape) * scale).astype(np.float32), name)

    norm = [
        numpy_helper.from_array(np.abs(rng.standard_normal(32)).astype(np.float32) + 0.5, f"n{k}") for k in range(4)
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], pads=[3, 3, 3, 3], strides=[2, 2], name="stem"),
        helper.make_node("BatchNormalization", ["a", "n0", "n1", "n2", "n3"], ["b"], name="norm"),
        helper.make_node("Relu", ["b"], ["c"], name="relu"),
        helper.make_node("MaxPool", ["c"], ["d"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], name="pool"),
        helper.make_node("Conv", ["d", "w2"], ["e"], pads=[1, 1, 1, 1], name="body"),
        helper.make_node("Add", ["e", "d"], ["f"], name="residual"),
        helper.make_node("Relu", ["f"], ["g"], name="relu2"),
        helper.make_node("Conv", ["g", "w3"], ["h"], group=32, pads=[1, 1, 1, 1], name="depthwise"),
        helper.make_node("GlobalAveragePool", ["h"], ["i"], name="average"),
        helper.make_node("Flatten", ["i"], ["j"], name="flatten"),
        helper.make_node("Gemm", ["j", "w4", "b4"], ["k"], transB=1, name="classifier"),
        helper.make_node("Softmax", ["k"], ["y"], axis=1, name="probabilities"),
    ]
    weights = [weight("w1", 32, 3, 7, 7), weight("w2", 32, 32, 3, 3), weight("w3", 32, 1, 3, 3), weight("w4", 10, 32)]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 64, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 10])],
        [*weights, *norm, numpy_helper.from_array(np.zeros(10, np.float32), "b4")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
