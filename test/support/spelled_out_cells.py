"""Recurrent cells that networks write layer by layer in a loop: ONNX's Loop and Scan, and a network of layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import onnx
from layer_networks import constant, new_network
from onnx import helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

import mlirt as trt
from mlirt.dialects.context import RtContext
from mlirt.frontend.network.module import network_module
from mlirt.frontend.onnx.importer import import_model

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
GATES = {"simple": ("n",), "gru": ("z", "r", "n"), "lstm": ("i", "f", "o", "g")}


class Ops(Protocol):
    """How layers are written; values are whatever stands for a tensor."""

    def weight(self, array: Array) -> Any: ...
    def matmul(self, x: Any, matrix: Any) -> Any: ...
    def binary(self, kind: str, x: Any, y: Any) -> Any: ...
    def activation(self, kind: str, x: Any) -> Any: ...
    def columns(self, x: Any, first: int, width: int) -> Any: ...
    def joined(self, x: Any, y: Any) -> Any: ...


@dataclass(frozen=True)
class Spelling:
    """One of the ways to write a cell."""

    cell: str = "lstm"
    joined_gates: bool = True
    joined_input: bool = False
    bias: bool = True
    order: tuple[int, ...] = (0, 1, 2, 3)
    function: str = "tanh"
    reset_after: bool = False
    mixture: int = 0
    projected: bool = False
    reverse: bool = False
    steps: int = 5
    batch: int = 2
    width: int = 3
    hidden: int = 4
    seed: int = 0

    @property
    def gates(self) -> tuple[str, ...]:
        return GATES[self.cell]

    def array(self, number: int, *shape: int) -> Array:
        generator = np.random.default_rng([self.seed, number])
        return (generator.uniform(-1, 1, shape) / np.sqrt(self.hidden)).astype(np.float32)

    def feeds(self) -> dict[str, Array]:
        columns = len(self.gates) * self.hidden if self.projected else self.width
        state = (self.batch, self.hidden)
        return {"x": self.array(0, self.steps, self.batch, columns), "h": self.array(1, *state)} | (
            {"c": self.array(2, *state)} if self.cell == "lstm" else {}
        )


class _Sums:
    """What input and hidden state give each gate."""

    def __init__(self, s: Spelling, ops: Ops, x: Any, h: Any) -> None:
        self.s, self.ops, self.x, self.h = s, ops, x, h
        size, count = s.hidden, len(s.gates)
        self.w, self.r = s.array(3, s.width, count * size), s.array(4, size, count * size)
        self.b, self.d = s.array(5, count * size), s.array(6, count * size)
        places = [place for place in s.order if place < count]
        self.place = {gate: places[number] * size for number, gate in enumerate(s.gates)}
        self.whole: dict[str, Any] = {}

    def _part(self, array: Array, gate: str) -> Array:
        return np.ascontiguousarray(array[..., self.place[gate] : self.place[gate] + self.s.hidden])

    def input(self, gate: str) -> Any:
        ops, s = self.ops, self.s
        if s.projected:
            return ops.columns(self.x, self.place[gate], s.hidden)
        if s.joined_gates:
            self.whole.setdefault("x", self._biased(ops.matmul(self.x, ops.weight(self.w)), self.b))
            return ops.columns(self.whole["x"], self.place[gate], s.hidden)
        return self._biased(ops.matmul(self.x, ops.weight(self._part(self.w, gate))), self._part(self.b, gate))

    def hidden(self, gate: str, h: Any | None = None) -> Any:
        ops, s = self.ops, self.s
        if s.joined_gates and h is None:
            self.whole.setdefault("h", self._biased(ops.matmul(self.h, ops.weight(self.r)), self.d))
            return ops.columns(self.whole["h"], self.place[gate], s.hidden)
        row = self.h if h is None else h
        return self._biased(ops.matmul(row, ops.weight(self._part(self.r, gate))), self._part(self.d, gate))

    def total(self, gate: str) -> Any:
        ops, s = self.ops, self.s
        if not s.joined_input or s.projected:
            return ops.binary("sum", self.hidden(gate), self.input(gate))
        both, bias = np.concatenate([self.w, self.r]), self.b + self.d
        if s.joined_gates:
            row = ops.joined(self.x, self.h)
            self.whole.setdefault("both", self._biased(ops.matmul(row, ops.weight(both)), bias))
            return ops.columns(self.whole["both"], self.place[gate], s.hidden)
        row = ops.joined(self.x, self.h)
        return self._biased(ops.matmul(row, ops.weight(self._part(both, gate))), self._part(bias, gate))

    def _biased(self, x: Any, bias: Array) -> Any:
        return self.ops.binary("sum", x, self.ops.weight(bias[None])) if self.s.bias else x


def write_cell(s: Spelling, ops: Ops, x: Any, h: Any, c: Any = None) -> list[Any]:
    """The next states."""
    sums = _Sums(s, ops, x, h)
    if s.cell == "simple":
        return [ops.activation(s.function, sums.total("n"))]
    if s.cell == "lstm":
        i, f, o = (ops.activation("sigmoid", sums.total(gate)) for gate in "ifo")
        new = ops.binary("prod", ops.activation(s.function, sums.total("g")), i)
        memory = ops.binary("sum", ops.binary("prod", f, c), new)
        return [ops.binary("prod", o, ops.activation("tanh", memory)), memory]
    z, r = (ops.activation("sigmoid", sums.total(gate)) for gate in "zr")
    if s.reset_after:
        inner = ops.binary("prod", r, sums.hidden("n"))
    else:
        inner = sums.hidden("n", ops.binary("prod", r, h))
    n = ops.activation(s.function, ops.binary("sum", sums.input("n"), inner))
    one = ops.weight(np.ones((1, 1), np.float32))
    if s.mixture == 0:
        kept = ops.binary("prod", ops.binary("sub", one, z), n)
        return [ops.binary("sum", kept, ops.binary("prod", z, h))]
    if s.mixture == 1:
        return [ops.binary("sum", n, ops.binary("prod", z, ops.binary("sub", h, n)))]
    kept = ops.binary("prod", ops.binary("sub", one, z), h)
    return [ops.binary("sum", ops.binary("prod", n, z), kept)]


class OnnxOps:
    """Nodes of a graph."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], **attributes))
        return name

    def weight(self, array: Array) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def matmul(self, x: str, matrix: str) -> str:
        return self.node("MatMul", x, matrix)

    def binary(self, kind: str, x: str, y: str) -> str:
        return self.node({"sum": "Add", "prod": "Mul", "sub": "Sub", "max": "Max"}[kind], x, y)

    def activation(self, kind: str, x: str) -> str:
        return self.node({"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu", "softsign": "Softsign"}[kind], x)

    def columns(self, x: str, first: int, width: int) -> str:
        bounds = [self.weight(np.array([number], np.int64)) for number in (first, first + width, 1)]
        return self.node("Slice", x, *bounds)

    def joined(self, x: str, y: str) -> str:
        return self.node("Concat", x, y, axis=1)


class LayerOps:
    """Layers of a network."""

    def __init__(self, network: trt.INetworkDefinition) -> None:
        self.network = network

    def weight(self, array: Array) -> trt.ITensor:
        return constant(self.network, array)

    def matmul(self, x: trt.ITensor, matrix: trt.ITensor) -> trt.ITensor:
        none = trt.MatrixOperation.NONE
        return self.network.add_matrix_multiply(x, none, matrix, none).get_output(0)

    def binary(self, kind: str, x: trt.ITensor, y: trt.ITensor) -> trt.ITensor:
        operation = {"sum": "SUM", "prod": "PROD", "sub": "SUB", "max": "MAX"}[kind]
        return self.network.add_elementwise(x, y, trt.ElementWiseOperation[operation]).get_output(0)

    def activation(self, kind: str, x: trt.ITensor) -> trt.ITensor:
        return self.network.add_activation(x, trt.ActivationType[kind.upper()]).get_output(0)

    def columns(self, x: trt.ITensor, first: int, width: int) -> trt.ITensor:
        rows = x.shape[0]
        return self.network.add_slice(x, (0, first), (rows, width), (1, 1)).get_output(0)

    def joined(self, x: trt.ITensor, y: trt.ITensor) -> trt.ITensor:
        layer = self.network.add_concatenation([x, y])
        layer.axis = 1
        return layer.get_output(0)


Write = Callable[[Spelling, Ops, Any, Any, Any], Sequence[Any]]


def _write(s: Spelling, ops: Ops, x: Any, h: Any, c: Any) -> Sequence[Any]:
    return write_cell(s, ops, x, h, c)


def _model(nodes: Sequence[onnx.NodeProto], feeds: Mapping[str, Array], outputs: Sequence[str]) -> onnx.ModelProto:
    made = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, array.shape) for name, array in feeds.items()]
    graph = helper.make_graph(nodes, "spelled", made, [onnx.ValueInfoProto(name=name) for name in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _info(name: str, kind: int, shape: Sequence[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, list(shape))


def by_scan(s: Spelling, write: Write = _write) -> onnx.ModelProto:
    """A Scan over x; its outputs are the last states and all hidden states."""
    ops, feeds = OnnxOps(), s.feeds()
    states = list(feeds)[1:]
    new = list(write(s, ops, "x_t", "h_t", "c_t"))
    shown = ops.node("Identity", new[0])
    infos = [_info(f"{name}_t", onnx.TensorProto.FLOAT, (s.batch, s.hidden)) for name in states]
    infos.append(_info("x_t", onnx.TensorProto.FLOAT, feeds["x"].shape[1:]))
    outputs = [onnx.ValueInfoProto(name=name) for name in (*new, shown)]
    body = helper.make_graph(ops.nodes, "body", infos, outputs, initializer=ops.weights)
    results = [*(f"last_{name}" for name in states), "y"]
    back = int(s.reverse)
    node = helper.make_node(
        "Scan",
        [*states, "x"],
        results,
        name="cells",
        body=body,
        num_scan_inputs=1,
        scan_input_directions=[back],
        scan_output_directions=[back],
    )
    return _model([node], feeds, results)


def by_loop(s: Spelling, write: Write = _write) -> onnx.ModelProto:
    """A Loop that gathers from x; its outputs are the last states and all hidden states in the order of the
    iterations.
    """
    ops, feeds = OnnxOps(), s.feeds()
    states = list(feeds)[1:]
    at = "i"
    if s.reverse:
        at = ops.node("Sub", ops.weight(np.array(s.steps - 1, np.int64)), "i")
    new = list(write(s, ops, ops.node("Gather", "x", at, axis=0), "h_t", "c_t"))
    go, shown = ops.node("Identity", "go"), ops.node("Identity", new[0])
    infos = [_info("i", onnx.TensorProto.INT64, ()), _info("go", onnx.TensorProto.BOOL, ())]
    infos += [_info(f"{name}_t", onnx.TensorProto.FLOAT, (s.batch, s.hidden)) for name in states]
    outputs = [onnx.ValueInfoProto(name=name) for name in (go, *new, shown)]
    body = helper.make_graph(ops.nodes, "body", infos, outputs, initializer=ops.weights)
    results = [*(f"last_{name}" for name in states), "y"]
    count = helper.make_node("Constant", [], ["count"], value=numpy_helper.from_array(np.array(s.steps, np.int64)))
    return _model(
        [count, helper.make_node("Loop", ["count", "", *states], results, name="cells", body=body)], feeds, results
    )


def by_layers(s: Spelling, write: Write = _write, counted: bool = False) -> trt.INetworkDefinition:
    """A loop of a network, `counted` by an input, with the outputs of `by_scan`."""
    network, feeds = new_network(), s.feeds()
    given = {name: network.add_input(name, trt.float32, array.shape) for name, array in feeds.items()}
    loop = network.add_loop()
    count = network.add_input("n", trt.int32, ()) if counted else constant(network, np.array(s.steps, np.int32))
    loop.add_trip_limit(count, trt.TripLimit.COUNT)
    x = loop.add_iterator(given["x"], 0, s.reverse).get_output(0)
    states = [loop.add_recurrence(given[name]) for name in list(feeds)[1:]]
    before = [state.get_output(0) for state in states]
    new = write(s, LayerOps(network), x, before[0], before[-1])
    for state, value in zip(states, new, strict=True):
        state.set_input(1, value)
        network.mark_output(loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0))
    kind = trt.LoopOutput.REVERSE if s.reverse else trt.LoopOutput.CONCATENATE
    every = loop.add_loop_output(new[0], kind, 0)
    every.set_input(1, count)
    network.mark_output(every.get_output(0))
    return network


WAYS = ("loop", "scan", "layers", "counted layers")


def module_of(way: str, s: Spelling, write: Write = _write) -> tuple[ModuleOp, RtContext, dict[str, Array]]:
    """The network of a spelling as IR before clean-up, and its feeds."""
    ctx, feeds = RtContext(), s.feeds()
    if way.endswith("layers"):
        counted = way.startswith("counted")
        feeds |= {"n": np.array(s.steps, np.int32)} if counted else {}
        return network_module(by_layers(s, write, counted), ctx), ctx, feeds
    return import_model(by_loop(s, write) if way == "loop" else by_scan(s, write), ctx), ctx, feeds
