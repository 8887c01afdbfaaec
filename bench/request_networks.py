"""The small networks of `bench/growth.py requests`, with seeded random weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import onnx
from graph_writer import GraphWriter, floats
from growth_networks import chain, fan_out, hourglass, random, transformer


def add(count: int = 4) -> onnx.ModelProto:
    """The sum of two rows."""
    writer = GraphWriter(0)
    return writer.model("add", [floats("a", count), floats("b", count)], [floats(writer.node("Add", "ab"), count)])


def products(layers: int = 5, width: int = 32) -> onnx.ModelProto:
    """Products and softmaxes of 8 rows."""
    writer = GraphWriter(0)
    value = "x"
    for number in range(layers):
        weight = writer.normal(f"weight_{number}", (width, width), 0.2)
        value = writer.node("Softmax", [writer.node("MatMul", [value, weight])], axis=-1)
    return writer.model("products", [floats("x", 8, width)], [floats(value, 8, width)])


def images(layers: int, size: int = 12, channels: int = 8) -> onnx.ModelProto:
    """Convolutions of one image."""
    writer = GraphWriter(0)
    value = "x"
    for number in range(layers):
        weight = writer.normal(f"weight_{number}", (channels, channels, 3, 3), 0.15)
        value = writer.node("Relu", [writer.node("Conv", [value, weight], pads=[1, 1, 1, 1])])
    shape = (1, channels, size, size)
    return writer.model("images", [floats("x", *shape)], [floats(value, *shape)])


def perceptron(width: int, rows: int = 1) -> onnx.ModelProto:
    """Three layers with activations."""
    writer = GraphWriter(0)
    value = "x"
    for number in range(3):
        weight = writer.normal(f"weight_{number}", (width, width), 0.05)
        value = writer.node("Relu", [writer.node("MatMul", [value, weight])])
    return writer.model("perceptron", [floats("x", rows, width)], [floats(value, rows, width)])


NETWORKS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "add": add,
    "add_10000": partial(add, 10_000),
    "products": products,
    "products_64": partial(products, 5, 64),
    "images_3": partial(images, 3),
    "images_10": partial(images, 10),
    "images_56": partial(images, 4, 56, 16),
    "perceptron_64": partial(perceptron, 64),
    "perceptron_256": partial(perceptron, 256),
    "perceptron_512": partial(perceptron, 512, 4),
    "chain_3": partial(chain, 3),
    "chain_30": partial(chain, 30),
    "chain_90": partial(chain, 90),
    "transformer_1": partial(transformer, 20),
    "transformer_2": partial(transformer, 60),
    "transformer_4": partial(transformer, 120),
    "random_20": partial(random, 20),
    "random_60": partial(random, 60),
    "fan_out_20": partial(fan_out, 20),
    "hourglass_40": partial(hourglass, 40),
}


def feeds_of(model: onnx.ModelProto) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """Arrays for all inputs: floats around 0, whole numbers of 0 and 1."""
    rng = np.random.default_rng(1)
    found: dict[str, np.ndarray[Any, np.dtype[Any]]] = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = tuple(dim.dim_value or 1 for dim in kind.shape.dim)
        is_whole = kind.elem_type == onnx.TensorProto.INT64
        found[value.name] = rng.integers(0, 2, shape) if is_whole else rng.standard_normal(shape, np.float32)
    return found
