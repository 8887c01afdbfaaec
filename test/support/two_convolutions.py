"""The smallest network that computes in int8: two convolutions with a rectifier, and names as exporters make them."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper
from onnx_models import Array, model_of

TENSORS = ["x", "/conv1/out_0", "relu_1", "y"]


def network(batch: int | str = "n") -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = {
        "w1": rng.standard_normal((8, 3, 3, 3)).astype(np.float32),
        "w2": rng.standard_normal((4, 8, 1, 1)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["/conv1/out_0"], pads=[1, 1, 1, 1], name="conv1"),
        helper.make_node("Relu", ["/conv1/out_0"], ["relu_1"], name="relu"),
        helper.make_node("Conv", ["relu_1", "w2"], ["y"], name="conv2"),
    ]
    return model_of(nodes, {"x": ("float32", [batch, 3, 8, 8])}, ["y"], weights)


def samples(count: int = 8, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((count, 3, 8, 8)).astype(np.float32)
