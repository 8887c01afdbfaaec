"""A small network that has most kinds of kernels: convolutions, attention, normalization, recurrence, reductions."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper
from onnx_models import Array, model_of, numbers

HEADS, DEPTH, SIDE, HIDDEN = 2, 16, 8, 32
WIDTH = HEADS * DEPTH

Nodes = list[onnx.NodeProto]
Weights = dict[str, Array]


def attending_network() -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Pixels of an image attend to each other; a recurrent layer reads them in order; the best classes come out."""
    weights: Weights = {}
    nodes = [*_image(weights), *_attention(weights), *_reading(weights), *_answer(weights)]
    feeds = {"x": numbers(1, 3, 4 * SIDE, 4 * SIDE)}
    return model_of(nodes, {"x": ("float32", feeds["x"].shape)}, ["classes", "best", "which"], weights), feeds


def _image(weights: Weights) -> Nodes:
    weights["stem_w"] = _weight(WIDTH, 3, 5, 5)
    weights["body_w"] = _weight(WIDTH, WIDTH, 3, 3)
    weights["tokens"] = np.array([1, WIDTH, SIDE * SIDE])
    return [
        helper.make_node("Conv", ["x", "stem_w"], ["stem"], strides=[2, 2], pads=[2, 2, 2, 2], name="stem"),
        helper.make_node("Relu", ["stem"], ["seen"], name="relu"),
        helper.make_node("AveragePool", ["seen"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2], name="pool"),
        helper.make_node("Conv", ["pooled", "body_w"], ["body"], pads=[1, 1, 1, 1], name="body"),
        helper.make_node("Add", ["body", "pooled"], ["sum"], name="residual"),
        helper.make_node("Reshape", ["sum", "tokens"], ["rows"], name="rows"),
        helper.make_node("Transpose", ["rows"], ["row"], perm=[0, 2, 1], name="turn"),
    ]


def _attention(weights: Weights) -> Nodes:
    weights |= {"gain": 1 + numbers(WIDTH, seed=3) / 10, "shift": numbers(WIDTH, seed=4) / 10}
    weights["heads"] = np.array([1, SIDE * SIDE, HEADS, DEPTH])
    weights["joined"] = np.array([1, SIDE * SIDE, WIDTH])
    weights["scale"] = np.asarray(DEPTH**-0.5, np.float32)
    nodes = [helper.make_node("LayerNormalization", ["row", "gain", "shift"], ["even"], axis=-1, name="norm")]
    for name, transposed in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        weights[f"{name}_w"] = _weight(WIDTH, WIDTH)
        nodes += [
            helper.make_node("MatMul", ["even", f"{name}_w"], [f"{name}_all"], name=f"{name}_product"),
            helper.make_node("Reshape", [f"{name}_all", "heads"], [f"{name}_heads"], name=f"{name}_split"),
            helper.make_node("Transpose", [f"{name}_heads"], [name], perm=transposed, name=f"{name}_turn"),
        ]
    return [
        *nodes,
        helper.make_node("MatMul", ["q", "k"], ["scores"], name="scores"),
        helper.make_node("Mul", ["scores", "scale"], ["scaled"], name="scale"),
        helper.make_node("Softmax", ["scaled"], ["shares"], axis=-1, name="shares"),
        helper.make_node("MatMul", ["shares", "v"], ["mixed"], name="mix"),
        helper.make_node("Transpose", ["mixed"], ["transposed"], perm=[0, 2, 1, 3], name="turn_back"),
        helper.make_node("Reshape", ["transposed", "joined"], ["attended"], name="join"),
        helper.make_node("Add", ["attended", "row"], ["tokens_out"], name="attention_residual"),
    ]


def _reading(weights: Weights) -> Nodes:
    weights["lstm_w"] = _weight(1, 4 * HIDDEN, WIDTH)
    weights["lstm_r"] = _weight(1, 4 * HIDDEN, HIDDEN)
    return [
        helper.make_node("Transpose", ["tokens_out"], ["steps"], perm=[1, 0, 2], name="steps"),
        helper.make_node("LSTM", ["steps", "lstm_w", "lstm_r"], ["states"], hidden_size=HIDDEN, name="read"),
        helper.make_node("ReduceMean", ["states"], ["mean"], axes=[0, 1], keepdims=0, name="mean"),
    ]


def _answer(weights: Weights) -> Nodes:
    weights |= {"class_w": _weight(50, HIDDEN), "class_b": numbers(50, seed=9), "five": np.array([5])}
    return [
        helper.make_node("Gemm", ["mean", "class_w", "class_b"], ["logits"], transB=1, name="classifier"),
        helper.make_node("Softmax", ["logits"], ["classes"], axis=-1, name="probabilities"),
        helper.make_node("TopK", ["classes", "five"], ["best", "which"], name="best"),
    ]


def _weight(*shape: int) -> Array:
    return numbers(*shape, seed=sum(shape)) * np.float32(np.prod(shape[1:]) ** -0.5)
