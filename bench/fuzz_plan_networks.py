"""Small networks for the fuzz of plans, one of each kind of plan, with the inputs of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]
Network = tuple[onnx.ModelProto, dict[str, Array]]

_LOOP = """<ir_version: 8, opset_import: ["": 17]>
decoder (float[7,4] table, float[4,7] head, int64[n] start, int64 stop) => (int64[m] tokens, float[k,4] rows) {
  most = Constant<value = int64 {5}>() go = Constant<value = bool {1}>()
  tokens, rows = Loop(most, go, start)<
    body = b (int64 i, bool c, int64[l] t) => (bool d, int64[u] s, float[4] row) {
      x = Gather(table, t) transposed = Transpose<perm = [1, 0]>(x) scores = MatMul(x, transposed)
      weights = Softmax<axis = -1>(scores) mixed = MatMul(weights, x)
      zero = Constant<value = int64[1] {0}>() one = Constant<value = int64[1] {1}>()
      shape = Shape(t) last = Sub(shape, one) final = Gather<axis = 0>(mixed, last) row = Squeeze(final, zero)
      logits = MatMul(final, head) new = ArgMax<axis = -1, keepdims = 0>(logits) s = Concat<axis = 0>(t, new)
      same = Equal(new, stop) flat = Squeeze(same, zero) d = Not(flat)
    }>
}"""


def numbers(*shape: int) -> Array:
    """Random single-precision numbers, the same for the same shape."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, tuple[int, list[int | str]]],
    outputs: dict[str, tuple[int, list[int | str]]],
    constants: dict[str, Array],
) -> onnx.ModelProto:
    given, made = (
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in one.items()]
        for one in (inputs, outputs)
    )
    kept = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "network", given, made, kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


_FLOAT, _INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def convolutions() -> Network:
    """Convolutions with borders, one of them depthwise, pooling and a product; no length is open."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"], pads=[1, 1, 1, 1], group=16),
        helper.make_node("MaxPool", ["c"], ["d"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["d", "w3"], ["e"]),
        helper.make_node("GlobalAveragePool", ["e"], ["f"]),
        helper.make_node("Flatten", ["f"], ["g"]),
        helper.make_node("Gemm", ["g", "w4"], ["y"]),
    ]
    weights = {
        "w1": numbers(16, 3, 3, 3),
        "w2": numbers(16, 1, 3, 3),
        "w3": numbers(20, 16, 1, 1),
        "w4": numbers(20, 10),
    }
    made = _model(nodes, {"x": (_FLOAT, [2, 3, 17, 19])}, {"y": (_FLOAT, [2, 10])}, weights)
    return made, {"x": numbers(2, 3, 17, 19)}


def perceptron() -> Network:
    """Products of any number of rows, a sum, an activation and a normalisation."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Softmax", ["d"], ["y"]),
    ]
    made = _model(
        nodes, {"x": (_FLOAT, ["n", 17])}, {"y": (_FLOAT, ["n", 24])}, {"w": numbers(17, 24), "b": numbers(24)}
    )
    return made, {"x": numbers(5, 17)}


def loop() -> Network:
    """A loop that appends what it finds until it finds something."""
    feeds: dict[str, Array] = {
        "table": numbers(7, 4),
        "head": numbers(4, 7),
        "start": np.arange(3, dtype=np.int64),
        "stop": np.array(6),
    }
    return onnx.parser.parse_model(_LOOP), feeds


def recurrence() -> Network:
    """An LSTM over any number of steps."""
    nodes = [helper.make_node("LSTM", ["x", "w", "r", "b"], ["y", "", ""], hidden_size=8)]
    weights = {"w": numbers(1, 32, 6), "r": numbers(1, 32, 8), "b": numbers(1, 64)}
    made = _model(nodes, {"x": (_FLOAT, ["n", 2, 6])}, {"y": (_FLOAT, ["n", 1, 2, 8])}, weights)
    return made, {"x": numbers(4, 2, 6)}


def quantized() -> Network:
    """An int8 convolution between quantisations."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "v", "o"], ["b"]),
        helper.make_node("Conv", ["a", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("QuantizeLinear", ["d", "t", "z"], ["e"]),
        helper.make_node("DequantizeLinear", ["e", "t", "z"], ["y"]),
    ]
    bytes_of_weights = np.random.default_rng(0).integers(-100, 100, (16, 5, 3, 3)).astype(np.int8)
    constants: dict[str, Array] = {
        "s": np.array(0.03, np.float32),
        "t": np.array(0.1, np.float32),
        "v": np.array(0.01, np.float32),
        "z": np.array(3, np.int8),
        "o": np.array(0, np.int8),
        "w": bytes_of_weights,
    }
    made = _model(nodes, {"x": (_FLOAT, [1, 5, 9, 11])}, {"y": (_FLOAT, [1, 16, 9, 11])}, constants)
    return made, {"x": numbers(1, 5, 9, 11)}


def own_sizes() -> Network:
    """Lengths that only the run tells: what is above zero, sorted and gathered."""
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["above"]),
        helper.make_node("NonZero", ["above"], ["places"]),
        helper.make_node("Transpose", ["places"], ["transposed"], perm=[1, 0]),
        helper.make_node("GatherND", ["x", "transposed"], ["found"]),
        helper.make_node("Mul", ["found", "two"], ["y"]),
    ]
    constants: dict[str, Array] = {"zero": np.array(0, np.float32), "two": np.array(2, np.float32)}
    made = _model(nodes, {"x": (_FLOAT, ["n", 5])}, {"y": (_FLOAT, ["m"])}, constants)
    return made, {"x": numbers(6, 5)}


NETWORKS = (convolutions, perceptron, loop, recurrence, quantized, own_sizes)
