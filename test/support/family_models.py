"""One small ONNX model, with its feeds, for each family of fused ops that a GPU has kernels for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper
from onnx_models import Array, model_of, numbers, one_node
from recurrent_models import recurrent_model

Case = tuple[onnx.ModelProto, dict[str, Array]]


def attention() -> Case:
    """Scaled products of queries and keys, their softmax, and the mean of values that it weights."""
    shape = (2, 4, 96, 32)
    nodes = [
        helper.make_node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2], name="turn"),
        helper.make_node("MatMul", ["q", "t"], ["s"], name="scores"),
        helper.make_node("Mul", ["s", "scale"], ["m"], name="scale"),
        helper.make_node("Softmax", ["m"], ["p"], axis=-1, name="weights"),
        helper.make_node("MatMul", ["p", "v"], ["y"], name="mean"),
    ]
    feeds = {name: numbers(*shape, seed=seed, dtype="float16") for seed, name in enumerate("qkv")}
    scale = {"scale": np.asarray(32**-0.5, np.float16)}
    return model_of(nodes, {name: ("float16", shape) for name in feeds}, ["y"], scale), feeds


def scatter() -> Case:
    """Several updates of one element: the order in which they are added is always the same."""
    places = np.random.default_rng(1).integers(0, 7, (400, 40))
    arrays = [numbers(7, 40), places, numbers(400, 40, seed=2)]
    return one_node("ScatterElements", arrays, 18, axis=0, reduction="add")


def suppress() -> Case:
    """Boxes that overlap, of three classes."""
    corners = np.random.default_rng(0).random((1, 200, 2)).astype(np.float32)
    boxes = np.concatenate([corners, corners + np.float32(0.2)], axis=-1)
    limits = [np.array([30]), np.array([0.3], np.float32), np.array([0.4], np.float32)]
    scores = np.random.default_rng(1).random((1, 3, 200)).astype(np.float32)
    return one_node("NonMaxSuppression", [boxes, scores, *limits], 11, (2, 3, 4))


def window() -> Case:
    return one_node("MaxPool", [numbers(2, 24, 33, 31)], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])


def normalization() -> Case:
    arrays = [numbers(70, 300), numbers(300, seed=1), numbers(300, seed=2)]
    return one_node("LayerNormalization", arrays, 17, (1, 2), axis=-1)


def resize() -> Case:
    scales = np.array([1, 1, 1.7, 2.3], np.float32)
    return one_node("Resize", [numbers(1, 5, 21, 19), None, scales], 18, (2,), mode="linear")


def pad() -> Case:
    return one_node("Pad", [numbers(3, 30, 20), np.array([0, 4, 3, 0, 5, 6])], 18, (1,), mode="reflect")


FAMILIES: dict[str, Callable[[], Case]] = {
    "attention": attention,
    "concat": lambda: one_node("Concat", [numbers(9, 40), numbers(9, 33, seed=1)], axis=1),
    "convolution": lambda: one_node("Conv", [numbers(2, 16, 20, 18), numbers(24, 16, 3, 3)], constants=(1,)),
    "cumulative": lambda: one_node("CumSum", [numbers(30, 400), np.array(1)], constants=(1,)),
    "gather": lambda: one_node("Gather", [numbers(60, 90), np.array([[3, 59, 0], [7, 7, 31]])], axis=0),
    "matmul": lambda: one_node("MatMul", [numbers(70, 300), numbers(300, 90)], constants=(1,)),
    "normalization": normalization,
    "pad": pad,
    "pointwise": lambda: one_node("Erf", [numbers(40, 333)]),
    "reduction": lambda: one_node("ReduceSum", [numbers(3, 100_000), np.array([1])], constants=(1,)),
    "resize": resize,
    "rnn": lambda: recurrent_model("LSTM", "bidirectional", hidden=64),
    "scatter": scatter,
    "softmax": lambda: one_node("Softmax", [numbers(70, 1100)], axis=-1),
    "suppress": suppress,
    "topk": lambda: one_node("TopK", [numbers(20, 900), np.array([17])], constants=(1,), outputs=2),
    "window": window,
}
NOT_IN_MODELS = {"interleave", "packed_matmul", "plugin", "reformat", "view"}
"""Ops without a model: `topk` serves ArgMax, layouts are reformatted and remainders of deconvolutions interleaved on
CPUs alone, a view moves nothing; plugins and products of packed weights have tests of their own."""
