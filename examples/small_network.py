"""A small residual network, made by hand: the one that docs/architecture.md follows through every level.

`python examples/small_network.py small.onnx` writes it. Weights are fractions with few bits, the same on every machine.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]

CHANNELS = 16
CLASSES = 10


def small_network() -> onnx.ModelProto:
    """Two convolutions with batch normalization, a residual addition, a pooling, a classifier.

    Input `image` [n, 3, 8, 8], output `scores` [n, 10], both float32; n is chosen by each run.
    """
    nodes = [
        helper.make_node("Conv", ["image", "conv1.weight"], ["a1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["a1", *_norm("norm1")], ["b1"], "norm1"),
        helper.make_node("Relu", ["b1"], ["c1"], "relu1"),
        helper.make_node("Conv", ["c1", "conv2.weight"], ["a2"], "conv2", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["a2", *_norm("norm2")], ["b2"], "norm2"),
        helper.make_node("Add", ["b2", "c1"], ["s2"], "add2"),
        helper.make_node("Relu", ["s2"], ["c2"], "relu2"),
        helper.make_node("MaxPool", ["c2"], ["p"], "pool", kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("Flatten", ["p"], ["f"], "flatten"),
        helper.make_node("Gemm", ["f", "classify.weight", "classify.bias"], ["scores"], "classify", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", CLASSES])],
        [numpy_helper.from_array(array, name) for name, array in _weights().items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _norm(name: str) -> list[str]:
    return [f"{name}.{part}" for part in ("scale", "bias", "mean", "variance")]


def _weights() -> dict[str, Array]:
    shapes = {
        "conv1.weight": (CHANNELS, 3, 3, 3),
        "conv2.weight": (CHANNELS, CHANNELS, 3, 3),
        **{name: (CHANNELS,) for layer in ("norm1", "norm2") for name in _norm(layer)},
        "classify.weight": (CLASSES, CHANNELS * 2 * 2),
        "classify.bias": (CLASSES,),
    }
    return {name: _fractions(shape, name.endswith("variance")) for name, shape in shapes.items()}


def _fractions(shape: tuple[int, ...], positive: bool) -> Array:
    """Multiples of 1/16 between -5/16 and 5/16; positive ones from 1 on."""
    steps = np.arange(np.prod(shape), dtype=np.int64) * 7 % 11
    return ((steps + 16 if positive else steps - 5) / 16).astype(np.float32).reshape(shape)


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "small.onnx").write_bytes(small_network().SerializeToString())
