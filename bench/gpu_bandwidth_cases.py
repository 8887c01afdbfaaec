"""Networks around one layer that moves more than it computes; each moves some 200 MB."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from graph_writer import GraphWriter

LAYER = "layer"
"""The name of the node that is measured."""

Write = Callable[[GraphWriter, str], str]
"""Appends the layer behind a tensor; returns its result."""


@dataclass(frozen=True)
class Case:
    """A layer on an input of a shape. With `channels` it stands between convolutions, behind one that makes so many."""

    name: str
    precision: str
    shape: tuple[int, ...]
    write: Write
    channels: int = 0

    def model(self) -> onnx.ModelProto:
        writer, x = GraphWriter(0), "x"
        kind = onnx.TensorProto.FLOAT if self.channels or self.precision == "fp32" else onnx.TensorProto.FLOAT16
        if self.channels:
            x = writer.node("Conv", [x, writer.normal("before", (self.channels, self.shape[1], 1, 1), 0.1)])
        y = self.write(writer, x)
        if self.channels:
            y = writer.node("Conv", [y, writer.normal("after", (8, self.channels, 1, 1), 0.1)])
        inputs = [onnx.helper.make_tensor_value_info("x", kind, self.shape)]
        graph = writer.model(self.name, inputs, [onnx.helper.make_empty_tensor_value_info(y)])
        return graph


def _one(kind: str, **attributes: Any) -> Write:
    """A node of one input; lists are its attributes, arrays further inputs."""
    arrays: Mapping[str, Any] = {key: value for key, value in attributes.items() if isinstance(value, np.ndarray)}
    plain = {key: value for key, value in attributes.items() if key not in arrays}

    def write(writer: GraphWriter, x: str) -> str:
        known = [writer.constant(key, value) if value.size else "" for key, value in arrays.items()]
        return writer.node(kind, [x, *known], LAYER, **plain)

    return write


def _depthwise(channels: int, size: int, stride: int, dtype: Any = np.float32) -> Write:
    pads = [size // 2] * 4

    def write(writer: GraphWriter, x: str) -> str:
        numbers = np.random.default_rng(1).standard_normal((channels, 1, size, size), np.float32)
        weights = writer.constant("taps", numbers.astype(dtype))
        return writer.node("Conv", [x, weights], LAYER, group=channels, pads=pads, strides=[stride, stride])

    return write


def _array(*values: float, dtype: Any = np.int64) -> np.ndarray[Any, Any]:
    return np.array(values, dtype)


def _per_channel(channels: int, dtype: Any) -> np.ndarray[Any, Any]:
    return np.linspace(0, 1, channels, dtype=np.float32).astype(dtype).reshape(channels, 1, 1)


_NONE = np.zeros(0, np.float32)
_POOL = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}


def _both(name: str, shape: tuple[int, ...], write: Callable[[Any], Write], channels: int = 0) -> tuple[Case, Case]:
    """In half and in single precision; the latter on half as many images or rows."""
    half = shape[0] // 2, *shape[1:]
    return (
        Case(f"{name} f16", "fp16", shape, write(np.float16), channels),
        Case(f"{name} f32", "fp32", half, write(np.float32), channels),
    )


CASES = (
    *_both("add bias", (64, 256, 56, 56), lambda dtype: _one("Add", b=_per_channel(256, dtype))),
    *_both("relu", (64, 256, 56, 56), lambda _: _one("Relu")),
    *_both("transpose matrix", (8192, 8192), lambda _: _one("Transpose", perm=[1, 0])),
    *_both("transpose to last", (64, 256, 56, 56), lambda _: _one("Transpose", perm=[0, 2, 3, 1])),
    *_both("transpose heads", (256, 512, 12, 64), lambda _: _one("Transpose", perm=[0, 2, 1, 3])),
    *_both("slice", (64, 256, 56, 56), lambda _: _one("Slice", starts=_array(0), ends=_array(128), axes=_array(1))),
    *_both(
        "pad", (64, 256, 56, 56), lambda dtype: _one("Pad", pads=_array(0, 0, 1, 1, 0, 0, 1, 1), v=np.zeros((), dtype))
    ),
    *_both("pad channels", (64, 256, 56, 56), lambda dtype: _one("Pad", pads=_array(0, 8, 0, 0, 0, 8, 0, 0))),
    *_both("join", (64, 128, 56, 56), lambda _: lambda writer, x: writer.node("Concat", [x, x], LAYER, axis=1)),
    *_both("gather rows", (131072, 768), lambda _: _one("Gather", indices=np.arange(65536)[::-1] * 2, axis=0)),
    *_both("depth to space", (64, 256, 56, 56), lambda _: _one("DepthToSpace", blocksize=2)),
    *_both("space to depth", (64, 256, 56, 56), lambda _: _one("SpaceToDepth", blocksize=2)),
    *_both("cumulative sum", (131072, 1024), lambda _: _one("CumSum", axis=_array(1))),
    *_both("cumulative columns", (64, 2048, 1024), lambda _: _one("CumSum", axis=_array(1))),
    *_both("cumulative long rows", (8, 16777216), lambda _: _one("CumSum", axis=_array(1))),
    *_both("layer norm 768", (131072, 768), lambda dtype: _one("LayerNormalization", scale=np.ones(768, dtype))),
    *_both("softmax 512", (131072, 512), lambda _: _one("Softmax", axis=-1)),
    *_both("row sum 1024", (131072, 1024), lambda _: _one("ReduceSum", axes=_array(1), keepdims=0)),
    *_both("row sum 64", (2097152, 64), lambda _: _one("ReduceSum", axes=_array(1), keepdims=0)),
    *_both("column sum", (131072, 1024), lambda _: _one("ReduceSum", axes=_array(0), keepdims=0)),
    *_both("column sum 64", (2097152, 64), lambda _: _one("ReduceSum", axes=_array(0), keepdims=0)),
    *_both("middle sum", (64, 2048, 1024), lambda _: _one("ReduceSum", axes=_array(1), keepdims=0)),
    *_both("whole sum", (131072, 1024), lambda _: _one("ReduceSum", axes=_array(0, 1), keepdims=0)),
    *_both("global average", (128, 1024, 28, 28), lambda _: _one("GlobalAveragePool")),
    *_both("max pool 3x3s2", (128, 64, 112, 112), lambda _: _one("MaxPool", strides=[2, 2], **_POOL)),
    *_both("max pool 2x2s2", (128, 64, 112, 112), lambda _: _one("MaxPool", strides=[2, 2], kernel_shape=[2, 2])),
    *_both("average pool 3x3s1", (64, 256, 56, 56), lambda _: _one("AveragePool", **_POOL)),
    *_both(
        "resize nearest", (64, 64, 64, 64), lambda _: _one("Resize", roi=_NONE, scales=_array(1, 1, 2, 2, dtype="f"))
    ),
    *_both("depthwise 3x3s1", (64, 256, 56, 56), lambda dtype: _depthwise(256, 3, 1, dtype)),
    *_both("global average last", (128, 16, 28, 28), lambda _: _one("GlobalAveragePool"), 1024),
    *_both("max pool 3x3s2 last", (128, 16, 112, 112), lambda _: _one("MaxPool", strides=[2, 2], **_POOL), 64),
    *_both("average pool 3x3s1 last", (64, 16, 56, 56), lambda _: _one("AveragePool", **_POOL), 256),
    *_both("depthwise 3x3s1 last", (64, 16, 56, 56), lambda _: _depthwise(256, 3, 1), 256),
    *_both("depthwise 3x3s2 last", (64, 16, 56, 56), lambda _: _depthwise(256, 3, 2), 256),
    *_both("depthwise 5x5s1 last", (64, 16, 56, 56), lambda _: _depthwise(256, 5, 1), 256),
)
