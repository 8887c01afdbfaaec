"""Fifteen small networks of many kinds, as cases of bench/cpu_fuzz.py: `--networks` runs them on any processor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from fuzz_cases import Case
from fuzz_graphs import Array
from onnx import TensorProto, helper, numpy_helper

_BATCHES = (1, 5)
_TYPES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "float64": TensorProto.DOUBLE,
    "int64": TensorProto.INT64,
}


class _Network:
    """A network as it is written: each node's result has a name of its own."""

    def __init__(self, seed: int, element: str = "float32") -> None:
        self._random = np.random.default_rng(seed)
        self._element = element
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []

    def add(self, kind: str, *operands: str, **attributes: Any) -> str:
        """A node's first result."""
        name = f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, [*operands], [name], name, **attributes))
        return name

    def add_some(self, kind: str, operands: Sequence[str], results: Sequence[str], **attributes: Any) -> None:
        self._nodes.append(helper.make_node(kind, [*operands], [*results], f"{kind}_{len(self._nodes)}", **attributes))

    def constant(self, value: Any, kind: str = "") -> str:
        name = f"weight_{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(np.asarray(value, kind or self._element), name))
        return name

    def weights(self, *shape: int) -> str:
        fan = max(1, int(np.prod(shape[1:])))
        return self.constant(self._random.normal(size=shape) / np.sqrt(fan))

    def convolved(self, x: str, outputs: int, inputs: int, size: int = 3, **more: Any) -> str:
        padding = [size // 2] * 4
        return self.add(
            "Conv", x, self.weights(outputs, inputs, size, size), self.weights(outputs), pads=padding, **more
        )

    def case(self, name: str, shape: Sequence[int], results: Sequence[str], kind: str = "") -> Case:
        """With one input `x` whose first length is open, run with several."""
        kind = kind or self._element
        ends = [helper.make_tensor_value_info("x", _TYPES[kind], ["n", *shape])]
        outputs = [onnx.ValueInfoProto(name=one) for one in results]
        graph = helper.make_graph(self._nodes, name, ends, outputs, self._weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        return Case(f"network {name}", model, tuple(self._feeds((batch, *shape), kind) for batch in _BATCHES))

    def _feeds(self, shape: Sequence[int], kind: str) -> dict[str, Array]:
        if kind == "int64":
            return {"x": self._random.integers(-50, 50, shape)}
        return {"x": self._random.normal(size=shape).astype(kind)}


def _residual(net: _Network) -> Case:
    x = net.add("Relu", net.convolved("x", 16, 3, 7, strides=[2, 2]))
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = net.add("Relu", net.convolved(x, 16, 16))
    x = net.add("Relu", net.add("Add", net.convolved(y, 16, 16), x))
    x = net.add("Flatten", net.add("GlobalAveragePool", net.convolved(x, 37, 16, 1, strides=[2, 2])))
    return net.case("residual convolutions", (3, 35, 37), [net.add("Gemm", x, net.weights(37, 10), net.weights(10))])


def _depthwise(net: _Network) -> Case:
    x = net.add("HardSwish", net.convolved("x", 24, 3, strides=[2, 2]))
    y = net.add("Clip", net.convolved(x, 24, 1, group=24), net.constant(0.0), net.constant(6.0))
    y = net.add("Sigmoid", net.convolved(y, 24, 1, 5, group=24))
    return net.case("depthwise convolutions", (3, 33, 31), [net.add("Add", x, net.convolved(y, 24, 24, 1))])


def _planes(net: _Network) -> Case:
    x = net.add("LeakyRelu", net.convolved("x", 32, 32), alpha=0.1)
    return net.case("3x3 convolutions", (32, 28, 28), [net.add("Relu", net.convolved(x, 48, 32))])


def _products(net: _Network) -> Case:
    x = net.add("Relu", net.add("Gemm", "x", net.weights(67, 129), net.weights(129)))
    x = net.add("MatMul", x, net.weights(129, 33))
    x = net.add("LayerNormalization", x, net.weights(33), net.weights(33))
    return net.case("products", (67,), [net.add("Softmax", x, axis=-1)])


def _topk(net: _Network) -> Case:
    x = net.add("Softmax", net.add("Mul", "x", net.constant(3.0)), axis=1)
    net.add_some("TopK", [x, net.constant([5], "int64")], ["values", "places"], axis=-1)
    return net.case("softmax and TopK", (7, 61), ["values", "places"])


def _lstm(net: _Network) -> Case:
    x = net.add("Transpose", "x", perm=[1, 0, 2])
    w, r, b = net.weights(2, 76, 11), net.weights(2, 76, 19), net.weights(2, 152)
    net.add_some("LSTM", [x, w, r, b], ["steps", "hidden", "cell"], hidden_size=19, direction="bidirectional")
    return net.case("LSTM", (9, 11), ["steps", "hidden", "cell"])


def _loop(net: _Network) -> Case:
    """The body keeps its weights, and stops by what it has computed."""
    weight = net.weights(13, 13)
    limit, count = net.constant(1e3), net.constant(20, "int64")
    inner = [
        helper.make_node("MatMul", ["state", weight], ["product"]),
        helper.make_node("Tanh", ["product"], ["small"]),
        helper.make_node("Add", ["small", "state"], ["next"]),
        helper.make_node("ReduceSumSquare", ["next"], ["size"], keepdims=0),
        helper.make_node("Less", ["size", limit], ["goes"]),
        helper.make_node("ReduceMean", ["next"], ["mean"], keepdims=0),
    ]
    given: list[tuple[str, int, list[str | int]]]
    made: list[tuple[str, int, list[str | int]]]
    given = [("i", TensorProto.INT64, []), ("on", TensorProto.BOOL, []), ("state", TensorProto.FLOAT, ["n", 13])]
    made = [("goes", TensorProto.BOOL, []), ("next", TensorProto.FLOAT, ["n", 13]), ("mean", TensorProto.FLOAT, [])]
    infos = [helper.make_tensor_value_info(*one) for one in (*given, *made)]
    body = helper.make_graph(inner, "body", infos[: len(given)], infos[len(given) :])
    net.add_some("Loop", [count, net.constant(True, "bool"), "x"], ["last", "means"], body=body)
    return net.case("loop", (13,), ["last", "means"])


def _quantized(net: _Network, x: str, scale: float) -> str:
    step, zero = net.constant(scale), net.constant(7, "int8")
    return net.add("DequantizeLinear", net.add("QuantizeLinear", x, step, zero), step, zero)


def _int8_weights(net: _Network, *shape: int) -> str:
    values = np.random.default_rng(sum(shape)).integers(-127, 128, shape)
    axis = 0 if len(shape) == 4 else 1
    scales = net.constant(0.001 * (1 + np.arange(shape[axis]) % 5))
    return net.add("DequantizeLinear", net.constant(values, "int8"), scales, axis=axis)


def _int8_convolutions(net: _Network) -> Case:
    x = _quantized(net, "x", 0.03)
    x = net.add("Relu", net.add("Conv", x, _int8_weights(net, 40, 16, 3, 3), net.weights(40), pads=[1, 1, 1, 1]))
    x = _quantized(net, x, 0.05)
    y = net.add("Conv", x, _int8_weights(net, 40, 1, 3, 3), pads=[1, 1, 1, 1], group=40)
    x = _quantized(net, net.add("Add", x, _quantized(net, y, 0.05)), 0.07)
    x = net.add("Conv", x, _int8_weights(net, 21, 40, 1, 1), strides=[2, 2])
    return net.case("int8 convolutions", (16, 19, 17), [_quantized(net, x, 0.06)])


def _int8_products(net: _Network) -> Case:
    x = net.add("MatMul", _quantized(net, "x", 0.03), _int8_weights(net, 70, 51))
    x = net.add("MatMul", _quantized(net, net.add("Gelu", x), 0.02), _int8_weights(net, 51, 20))
    return net.case("int8 products", (3, 70), [x])


def _halves(net: _Network) -> Case:
    x = net.add("Relu", net.convolved("x", 24, 8))
    x = net.add("Sigmoid", net.convolved(x, 24, 24, 1))
    x = net.add("Flatten", net.add("AveragePool", x, kernel_shape=[3, 3], strides=[3, 3]))
    x = net.add("Gemm", x, net.weights(24 * 16, 31), net.weights(31))
    return net.case("half precision", (8, 12, 13), [net.add("Softmax", x, axis=-1)])


def _attention(net: _Network) -> Case:
    x = net.add("LayerNormalization", "x", net.weights(48), net.weights(48))
    shape = net.constant([0, 0, 4, 12], "int64")
    parts = [net.add("Reshape", net.add("MatMul", x, net.weights(48, 48)), shape) for _ in range(3)]
    queries, keys, values = (
        net.add("Transpose", one, perm=perm)
        for one, perm in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
    )
    scores = net.add("Mul", net.add("MatMul", queries, keys), net.constant(12**-0.5))
    y = net.add("MatMul", net.add("Softmax", scores, axis=-1), values)
    y = net.add("Reshape", net.add("Transpose", y, perm=[0, 2, 1, 3]), net.constant([0, 0, 48], "int64"))
    x = net.add("Add", "x", net.add("MatMul", y, net.weights(48, 48)))
    y = net.add(
        "MatMul", net.add("Gelu", net.add("MatMul", x, net.weights(48, 96)), approximate="tanh"), net.weights(96, 48)
    )
    return net.case("attention", (17, 48), [net.add("Add", x, y)])


_FUNCTIONS = (
    *("Exp", "Tanh", "Erf", "Sin", "Cos", "Tan", "Floor", "Ceil", "Round", "Sigmoid", "Softplus", "Sinh", "Cosh"),
    *("Asinh", "Atan", "Elu", "Selu", "Mish", "Softsign", "Sign", "Abs", "Gelu"),
)


def _functions(net: _Network) -> Case:
    results = [net.add(kind, "x") for kind in _FUNCTIONS]
    positive = net.add("Add", net.add("Abs", "x"), net.constant(0.25))
    results += [net.add(kind, positive) for kind in ("Log", "Sqrt", "Reciprocal")]
    results += [net.add("Pow", positive, "x"), net.add("Mod", "x", positive, fmod=1)]
    return net.case("functions", (3, 37), results)


def _doubles(net: _Network) -> Case:
    x = net.add("MatMul", net.add("Exp", "x"), net.weights(19, 23))
    x = net.add("Floor", net.add("Mul", net.add("Tanh", x), net.constant(7.0)))
    return net.case("float64", (6, 19), [x, net.add("ReduceMean", x, net.constant([1], "int64"))])


def _integers(net: _Network) -> Case:
    x = net.add("Add", net.add("Mul", "x", net.constant(3)), net.constant(np.arange(11)))
    y = net.add("Div", x, net.constant(7))
    total = net.add("CumSum", x, net.constant(1))
    chosen = net.add("Gather", total, net.constant([3, 0, -1]), axis=1)
    order = net.add("ArgMax", net.add("Mod", x, net.constant(5)), axis=1)
    return net.case("int64", (11,), [y, total, chosen, order, net.add("Where", net.add("Greater", x, y), x, y)])


def _resized(net: _Network) -> Case:
    scales = net.constant([1, 1, 1.7, 2.0], "float32")
    x = net.add("Resize", net.convolved("x", 6, 3), "", scales, mode="linear")
    y = net.add("Gather", x, net.constant([5, 2, 2, 0], "int64"), axis=1)
    y = net.add("Slice", y, *(net.constant(one, "int64") for one in ([1], [-1], [2], [2])))
    y = net.add("Pad", y, net.constant([0, 0, 2, 1, 0, 0, 1, 2], "int64"), mode="reflect")
    small = net.add("Resize", x, "", net.constant([1, 1, 0.5, 0.5], "float32"), mode="nearest")
    return net.case("resize and gather", (3, 10, 9), [y, small])


_NETWORKS: tuple[tuple[Callable[[_Network], Case], Mapping[str, str]], ...] = (
    *((one, {}) for one in (_residual, _depthwise, _planes, _products, _topk, _lstm, _loop)),
    *((one, {}) for one in (_int8_convolutions, _int8_products, _attention, _functions, _resized)),
    *((_halves, {"element": "float16"}), (_doubles, {"element": "float64"}), (_integers, {"element": "int64"})),
)


def networks() -> Iterator[Case]:
    """The networks with the inputs of two runs each."""
    for number, (write, settings) in enumerate(_NETWORKS):
        yield write(_Network(number, **settings))
