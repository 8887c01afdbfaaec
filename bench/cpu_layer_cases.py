"""Single layers at realistic sizes as one-node ONNX models: plain tensors come in and go out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from graph_writer import GraphWriter
from onnx import TensorProto, helper

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]

_OPSET = 21
_TYPES = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}


@dataclass(frozen=True)
class Layer:
    """One node. `inputs` are shapes of tensors that come in, float32 or what the letters of `types` say, and arrays
    that are part of the model; `bounds` limits the integers among them.
    """

    name: str
    kind: str
    inputs: tuple[Shape | Array | None, ...]
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    outputs: str = "f"
    types: str = ""
    bound: int = 2

    def model(self) -> onnx.ModelProto:
        write, names = GraphWriter(0), list[str]()
        given: list[onnx.ValueInfoProto] = []
        for number, one in enumerate(self.inputs):
            if one is None:
                names.append("")
            elif isinstance(one, np.ndarray):
                names.append(write.constant(f"c{number}", one))
            else:
                names.append(f"x{number}")
                given.append(helper.make_tensor_value_info(f"x{number}", self._type(number), one))
        found = [f"y{number}" for number in range(len(self.outputs))]
        made = [
            helper.make_tensor_value_info(name, _TYPES[letter], None)
            for name, letter in zip(found, self.outputs, strict=True)
            if letter != "-"
        ]
        kept = [name if letter != "-" else "" for name, letter in zip(found, self.outputs, strict=True)]
        write.append(self.kind, names, kept, **self.attributes)
        return write.model("layer", given, made, _OPSET)

    def feeds(self) -> dict[str, Array]:
        random = np.random.default_rng(0)
        arrays: dict[str, Array] = {}
        for number, one in enumerate(self.inputs):
            if isinstance(one, tuple):
                letter = self._type(number)
                if letter == TensorProto.FLOAT:
                    arrays[f"x{number}"] = random.standard_normal(one, np.float32)
                else:
                    integers = random.integers(0, self.bound, one)
                    arrays[f"x{number}"] = integers.astype(np.int64 if letter == TensorProto.INT64 else np.bool_)
        return arrays

    def _type(self, number: int) -> int:
        return _TYPES[self.types[number] if self.types else "f"]


def ints(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def weights(*shape: int) -> Array:
    return np.random.default_rng(1).standard_normal(shape, np.float32) * np.float32(0.1)


_IMAGE: Shape = (1, 64, 56, 56)
_TOKENS: Shape = (1, 197, 768)
_SCORES: Shape = (12, 197, 197)


def _pool(kind: str, window: int, stride: int, pad: int, shape: Shape, **more: Any) -> Layer:
    rank = len(shape) - 2
    settings = {"kernel_shape": [window] * rank, "strides": [stride] * rank, "pads": [pad] * 2 * rank, **more}
    text = "x".join(str(window) for _ in range(rank))
    name = f"{kind[:-4].lower()} pool {text}s{stride}{' padded' if pad else ''}, {'x'.join(map(str, shape[1:]))}"
    return Layer(name, kind, (shape,), settings)


def _conv(name: str, shape: Shape, outputs: int, window: Shape, kind: str = "Conv", **settings: Any) -> Layer:
    groups = settings.get("group", 1)
    kernel = (
        weights(shape[1], outputs // groups, *window)
        if kind == "ConvTranspose"
        else weights(outputs, shape[1] // groups, *window)
    )
    return Layer(name, kind, (shape, kernel, weights(outputs)), settings)


def _resize(name: str, shape: Shape, factor: float, **settings: Any) -> Layer:
    scales = np.array([1, 1, factor, factor], np.float32)
    return Layer(name, "Resize", (shape, None, scales), settings)


LAYERS = (
    Layer("tile 1x1x4x4 of 64x56x56", "Tile", (_IMAGE, ints(1, 1, 4, 4))),
    Layer("tile 1x16 of 128x49", "Tile", ((128, 49), ints(1, 16))),
    Layer("tile 8x1 of 64x768", "Tile", ((64, 768), ints(8, 1))),
    Layer("pad reflect 1, 64x56x56", "Pad", (_IMAGE, ints(0, 0, 1, 1, 0, 0, 1, 1)), {"mode": "reflect"}),
    Layer(
        "pad reflect 40, 3x256x256", "Pad", ((1, 3, 256, 256), ints(0, 0, 40, 40, 0, 0, 40, 40)), {"mode": "reflect"}
    ),
    Layer("pad edge 2, 64x56x56", "Pad", (_IMAGE, ints(0, 0, 2, 2, 0, 0, 2, 2)), {"mode": "edge"}),
    Layer("pad zeros 1, 64x56x56", "Pad", (_IMAGE, ints(0, 0, 1, 1, 0, 0, 1, 1))),
    Layer("top 100 of 8400", "TopK", ((1, 8400), ints(100)), outputs="fi"),
    Layer("top 5 of 1000", "TopK", ((1, 1000), ints(5)), outputs="fi"),
    Layer("top 50 of 80x2048", "TopK", ((80, 2048), ints(50)), outputs="fi"),
    _pool("MaxPool", 2, 2, 0, (1, 64, 112, 112)),
    _pool("MaxPool", 2, 2, 0, (1, 512, 14, 14)),
    _pool("MaxPool", 3, 2, 1, (1, 64, 112, 112)),
    _pool("MaxPool", 3, 1, 1, (1, 192, 28, 28)),
    _pool("MaxPool", 5, 1, 2, (1, 256, 20, 20)),
    _pool("MaxPool", 2, 2, 0, (1, 16, 32, 32, 32)),
    _pool("AveragePool", 2, 2, 0, (1, 128, 56, 56)),
    _pool("AveragePool", 3, 1, 1, (1, 192, 28, 28), count_include_pad=1),
    _pool("MaxPool", 3, 2, 1, (1, 64, 4000)),
    Layer("global average pool, 2048x7x7", "GlobalAveragePool", ((1, 2048, 7, 7),)),
    Layer("global max pool, 256x56x56", "GlobalMaxPool", ((1, 256, 56, 56),)),
    _resize(
        "resize linear x2, 64x40x40", (1, 64, 40, 40), 2, mode="linear", coordinate_transformation_mode="half_pixel"
    ),
    _resize("resize linear x0.5, 3x512x512", (1, 3, 512, 512), 0.5, mode="linear"),
    _resize(
        "resize linear corners x4, 21x65x65",
        (1, 21, 65, 65),
        4,
        mode="linear",
        coordinate_transformation_mode="align_corners",
    ),
    _resize(
        "resize nearest x2, 128x40x40",
        (1, 128, 40, 40),
        2,
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    ),
    _resize("resize cubic x2, 3x128x128", (1, 3, 128, 128), 2, mode="cubic"),
    Layer("softmax rows of 197", "Softmax", (_SCORES,), {"axis": -1}),
    Layer("softmax rows of 1000", "Softmax", ((32, 1000),), {"axis": -1}),
    Layer("softmax over channels, 21x128x128", "Softmax", ((1, 21, 128, 128),), {"axis": 1}),
    Layer("log softmax rows of 5000", "LogSoftmax", ((16, 5000),), {"axis": -1}),
    Layer("add", "Add", (_IMAGE, _IMAGE)),
    Layer("add channel, 64x56x56", "Add", (_IMAGE, (1, 64, 1, 1))),
    Layer("add row, 197x768", "Add", (_TOKENS, (768,))),
    Layer("multiply column, 197x768", "Mul", (_TOKENS, (1, 197, 1))),
    Layer("outer sum, 512+512", "Add", ((512, 1), (1, 512))),
    Layer("divide", "Div", (_IMAGE, _IMAGE)),
    Layer("power 2", "Pow", (_TOKENS, np.array(2, np.float32))),
    Layer("sigmoid", "Sigmoid", (_IMAGE,)),
    Layer("tanh", "Tanh", (_IMAGE,)),
    Layer("exp", "Exp", (_TOKENS,)),
    Layer("elu", "Elu", (_IMAGE,)),
    Layer("softplus", "Softplus", (_IMAGE,)),
    Layer("mish", "Mish", (_IMAGE,)),
    Layer("arc tangent", "Atan", (_TOKENS,)),
    Layer("absolute", "Abs", (_TOKENS,)),
    Layer("erf", "Erf", (_TOKENS,)),
    Layer("gelu", "Gelu", (_TOKENS,)),
    Layer("hard swish", "HardSwish", (_IMAGE,)),
    Layer("leaky relu", "LeakyRelu", (_IMAGE,)),
    Layer("prelu", "PRelu", (_IMAGE, weights(64, 1, 1))),
    Layer("clip", "Clip", (_IMAGE, np.array(0, np.float32), np.array(6, np.float32))),
    Layer("greater", "Greater", (_IMAGE, _IMAGE), outputs="b"),
    Layer("where", "Where", (_IMAGE, _IMAGE, _IMAGE), types="bff"),
    Layer("where mask of rows", "Where", ((197, 197), _SCORES, np.array(-1e9, np.float32)), types="bff"),
    Layer("cast to integers", "Cast", (_TOKENS,), {"to": TensorProto.INT64}, outputs="i"),
    Layer("expand rows", "Expand", ((1, 1, 768), ints(8, 64, 768))),
    Layer("expand columns", "Expand", ((64, 56, 1), ints(64, 56, 56))),
    Layer("transpose NCHW to NHWC", "Transpose", (_IMAGE,), {"perm": [0, 2, 3, 1]}),
    Layer("transpose NHWC to NCHW", "Transpose", ((1, 56, 56, 64),), {"perm": [0, 3, 1, 2]}),
    Layer("transpose heads", "Transpose", ((1, 197, 12, 64),), {"perm": [0, 2, 1, 3]}),
    Layer("transpose keys", "Transpose", ((1, 197, 12, 64),), {"perm": [0, 2, 3, 1]}),
    Layer("transpose matrix 1000x700", "Transpose", ((1000, 700),), {"perm": [1, 0]}),
    Layer("transpose reversed, 24x32x40x16", "Transpose", ((24, 32, 40, 16),), {"perm": [3, 2, 1, 0]}),
    Layer("transpose 3x640x640 to last", "Transpose", ((1, 3, 640, 640),), {"perm": [0, 2, 3, 1]}),
    Layer("concat channels", "Concat", (_IMAGE, (1, 128, 56, 56)), {"axis": 1}),
    Layer("concat columns", "Concat", ((1, 197, 64), (1, 197, 100)), {"axis": 2}),
    Layer("split 3, columns", "Split", ((1, 197, 2304),), {"axis": 2, "num_outputs": 3}, outputs="fff"),
    Layer("split 2, channels", "Split", (_IMAGE,), {"axis": 1, "num_outputs": 2}, outputs="ff"),
    Layer("slice rows and columns", "Slice", (_IMAGE, ints(4, 4), ints(52, 52), ints(2, 3))),
    Layer("slice every other column", "Slice", (_IMAGE, ints(0), ints(56), ints(3), ints(2))),
    Layer("slice reversed", "Slice", ((256, 1024), ints(-1), ints(-(2**31)), ints(1), ints(-1))),
    Layer("depth to space", "DepthToSpace", ((1, 64, 56, 56),), {"blocksize": 2}),
    Layer("space to depth", "SpaceToDepth", ((1, 16, 112, 112),), {"blocksize": 2}),
    Layer("gather embeddings", "Gather", (weights(30000, 384), (1, 128)), types="fi", bound=30000),
    Layer("gather columns", "Gather", ((512, 1000), (100,)), {"axis": 1}, types="fi", bound=1000),
    Layer("gather elements", "GatherElements", ((512, 1000), (512, 100)), {"axis": 1}, types="fi", bound=1000),
    Layer("gather nd", "GatherND", ((64, 64, 128), (500, 2)), types="fi", bound=64),
    Layer(
        "scatter elements",
        "ScatterElements",
        ((512, 1000), (512, 100), (512, 100)),
        {"axis": 1},
        types="fif",
        bound=1000,
    ),
    Layer("scatter nd", "ScatterND", ((64, 64, 128), (100, 2), (100, 128)), types="fif", bound=64),
    Layer("one hot", "OneHot", ((1024,), ints(256), np.array([0, 1], np.float32)), types="iff", bound=256),
    Layer("reduce mean last, 197x768", "ReduceMean", (_TOKENS, ints(-1)), {"keepdims": 1}),
    Layer("reduce sum middle, 197x768", "ReduceSum", (_TOKENS, ints(1)), {"keepdims": 0}),
    Layer("reduce sum first, 512x1024", "ReduceSum", ((512, 1024), ints(0)), {"keepdims": 0}),
    Layer("reduce max channels, 64x56x56", "ReduceMax", (_IMAGE, ints(1)), {"keepdims": 1}),
    Layer("reduce mean image, 64x56x56", "ReduceMean", (_IMAGE, ints(2, 3)), {"keepdims": 1}),
    Layer("reduce sum all, 64x56x56", "ReduceSum", (_IMAGE,), {"keepdims": 0}),
    Layer("reduce L2 last, 1000x128", "ReduceL2", ((1000, 128), ints(-1)), {"keepdims": 1}),
    Layer("argmax last, 64x1000", "ArgMax", ((64, 1000),), {"axis": 1}, outputs="i"),
    Layer("argmax channels, 21x128x128", "ArgMax", ((1, 21, 128, 128),), {"axis": 1}, outputs="i"),
    Layer("cumulative sum last, 64x1000", "CumSum", ((64, 1000), np.array(1, np.int64))),
    Layer("cumulative sum first, 1000x64", "CumSum", ((1000, 64), np.array(0, np.int64))),
    Layer("layer norm 768", "LayerNormalization", (_TOKENS, weights(768), weights(768))),
    Layer("group norm 32, 64x56x56", "GroupNormalization", (_IMAGE, weights(64), weights(64)), {"num_groups": 32}),
    Layer("instance norm, 64x56x56", "InstanceNormalization", (_IMAGE, weights(64), weights(64))),
    Layer(
        "batch norm, 64x56x56",
        "BatchNormalization",
        (_IMAGE, weights(64), weights(64), weights(64), np.abs(weights(64)) + 1),
    ),
    Layer("LRN 5, 64x56x56", "LRN", (_IMAGE,), {"size": 5}),
    Layer("matmul 64x64x64", "MatMul", ((64, 64), (64, 64))),
    Layer("matmul 12 of 197x197x64", "MatMul", ((12, 197, 64), (12, 64, 197))),
    Layer("matmul 197x768x768", "MatMul", (_TOKENS, weights(768, 768))),
    Layer("matmul 1x1000x1024", "MatMul", ((1, 1024), weights(1024, 1000))),
    Layer("gemm 32x1000x512", "Gemm", ((32, 512), weights(1000, 512), weights(1000)), {"transB": 1}),
    _conv("conv 1x1, 64 to 128, 56x56", _IMAGE, 128, (1, 1)),
    _conv("conv 3x3, 64 to 64, 56x56", _IMAGE, 64, (3, 3), pads=[1, 1, 1, 1]),
    _conv("conv 3x3 by 2, 3 to 32, 224x224", (1, 3, 224, 224), 32, (3, 3), pads=[1, 1, 1, 1], strides=[2, 2]),
    _conv("conv 5x5, 32 to 64, 28x28", (1, 32, 28, 28), 64, (5, 5), pads=[2, 2, 2, 2]),
    _conv("conv 7x7 by 2, 3 to 64, 224x224", (1, 3, 224, 224), 64, (7, 7), pads=[3, 3, 3, 3], strides=[2, 2]),
    _conv("depthwise 3x3, 96, 56x56", (1, 96, 56, 56), 96, (3, 3), pads=[1, 1, 1, 1], group=96),
    _conv("depthwise 5x5, 240, 14x14", (1, 240, 14, 14), 240, (5, 5), pads=[2, 2, 2, 2], group=240),
    _conv("conv 3x3 dilated 2, 64, 28x28", (1, 64, 28, 28), 64, (3, 3), pads=[2, 2, 2, 2], dilations=[2, 2]),
    _conv("conv 3x3 of 32 groups, 128, 28x28", (1, 128, 28, 28), 128, (3, 3), pads=[1, 1, 1, 1], group=32),
    _conv("conv 1-D 5, 80 to 256, 400", (1, 80, 400), 256, (5,), pads=[2, 2]),
    _conv("conv 3-D 3x3x3, 16 to 32, 16x28x28", (1, 16, 16, 28, 28), 32, (3, 3, 3), pads=[1] * 6),
    _conv("deconv 2x2 by 2, 64 to 32, 28x28", (1, 64, 28, 28), 32, (2, 2), "ConvTranspose", strides=[2, 2]),
    _conv(
        "deconv 4x4 by 2, 64 to 32, 28x28", (1, 64, 28, 28), 32, (4, 4), "ConvTranspose", strides=[2, 2], pads=[1] * 4
    ),
    Layer(
        "LSTM 128, 64 steps",
        "LSTM",
        ((64, 1, 128), weights(1, 512, 128), weights(1, 512, 128), weights(1, 1024)),
        {"hidden_size": 128},
    ),
    Layer(
        "GRU 64, 64 steps",
        "GRU",
        ((64, 1, 64), weights(1, 192, 64), weights(1, 192, 64), weights(1, 384)),
        {"hidden_size": 64},
    ),
)
