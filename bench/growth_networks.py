"""The generated networks of bench/growth.py: of any number of nodes, with seeded random weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx
from graph_writer import GraphWriter, floats
from transformer_network import BertSizes, bert_base

CHANNELS = 8
WIDTH = 32


def dynamic_images(layers: int, seed: int = 0) -> onnx.ModelProto:
    """`layers` convolutions of small images whose batch, height and width are open; every fifth is a sum instead."""
    writer = GraphWriter(seed)
    value, earlier = "x", "x"
    for number in range(layers):
        if number % 5 == 4:
            value, earlier = writer.node("Add", [value, earlier]), value
        else:
            value = _convolved(writer, value, 4, f"{number}")
    return writer.model(f"images_{layers}", [floats("x", "n", 4, "h", "w")], [floats(value, "n", 4, "h", "w")])


def chain(nodes: int, seed: int = 0) -> onnx.ModelProto:
    """Equal convolutions, batch normalizations and activations."""
    writer = GraphWriter(seed)
    value = "x"
    for number in range(max(nodes // 3, 1)):
        weight = writer.normal(f"weight_{number}", (CHANNELS, CHANNELS, 3, 3), 0.15)
        value = writer.node("Conv", [value, weight], pads=[1, 1, 1, 1])
        sides = {"scale": (0.9, 1.1), "shift": (-0.1, 0.1), "mean": (-0.1, 0.1), "variance": (0.9, 1.1)}
        given = [writer.uniform(f"{name}_{number}", (CHANNELS,), *range_) for name, range_ in sides.items()]
        value = writer.node("Relu", [writer.node("BatchNormalization", [value, *given])])
    return writer.model("chain", [floats("x", 1, CHANNELS, 16, 16)], [floats(value, 1, CHANNELS, 16, 16)])


def transformer(nodes: int, seed: int = 0) -> onnx.ModelProto:
    """Equal small encoder layers of BERT."""
    sizes = [BertSizes(layers, 64, 2, 128, 16, 100, 16) for layers in (1, 2)]
    one, two = (len(bert_base(1, seed, size).graph.node) for size in sizes)
    layers = max(1, round((nodes - one) / (two - one)) + 1)
    return bert_base(1, seed, BertSizes(layers, 64, 2, 128, 16, 100, 16))


def random(nodes: int, seed: int = 0) -> onnx.ModelProto:
    """Each node takes one or two of the last 16 values, so that few kernels are equal."""
    writer, rng = GraphWriter(seed), np.random.default_rng(seed)
    values, used = ["x"], set[str]()
    for _ in range(nodes):
        recent = values[-16:]
        one, other = (recent[int(rng.integers(len(recent)))] for _ in range(2))
        kind = str(rng.choice(["Relu", "Sigmoid", "Tanh", "Add", "Mul", "Sub", "Softmax", "MatMul"]))
        if kind == "MatMul":
            other = writer.normal(f"weight_{int(rng.integers(8))}", (WIDTH, WIDTH), 0.1)
        operands = [one, other] if kind in ("Add", "Mul", "Sub", "MatMul") else [one]
        used.update(operands)
        values.append(writer.node(kind, operands))
    total = writer.node("Sum", [value for value in values if value not in used])
    return writer.model("random", [floats("x", 4, WIDTH)], [floats(total, 4, WIDTH)])


def fan_out(nodes: int, seed: int = 0) -> onnx.ModelProto:
    """One value, of which many products with weights make the parts of one stacked tensor."""
    writer = GraphWriter(seed)
    parts = [_product(writer, "x", number) for number in range(max(nodes - 1, 1))]
    result = writer.node("Concat", parts, axis=1)
    return writer.model("fan_out", [floats("x", 4, WIDTH)], [floats(result, 4, WIDTH * len(parts))])


def hourglass(nodes: int, seed: int = 0) -> onnx.ModelProto:
    """Many values of one, which are then added in pairs until one is left."""
    writer = GraphWriter(seed)
    values = [_product(writer, "x", number) for number in range(max(nodes // 2, 1))]
    while len(values) > 1:
        pairs = [writer.node("Add", values[k : k + 2]) for k in range(0, len(values) - 1, 2)]
        values = pairs + values[2 * len(pairs) :]
    return writer.model("hourglass", [floats("x", 4, WIDTH)], [floats(values[0], 4, WIDTH)])


KINDS: Mapping[str, Callable[[int], onnx.ModelProto]] = {
    "chain": chain,
    "transformer": transformer,
    "random": random,
    "fan-out": fan_out,
    "hourglass": hourglass,
}


def _convolved(writer: GraphWriter, value: str, channels: int, name: str) -> str:
    weight = writer.normal(f"weight_{name}", (channels, channels, 3, 3), 0.15)
    bias = writer.normal(f"bias_{name}", (channels,), 0.1)
    return writer.node("Relu", [writer.node("Conv", [value, weight, bias], pads=[1, 1, 1, 1])])


def _product(writer: GraphWriter, value: str, number: int) -> str:
    return writer.node("MatMul", [value, writer.normal(f"weight_{number}", (WIDTH, WIDTH), 0.1)])
