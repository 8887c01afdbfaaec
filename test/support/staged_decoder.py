"""A small decoder with caches: what pipelines divide into stages."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, WORDS = 32, 50


def staged_decoder(layers: int = 6, width: int = WIDTH) -> onnx.ModelProto:
    """logits[1, n, words] of ids[1, n]: layers that attend over a cache, with one mask for all, made of both lengths.

    States: `past0` [1, p, width] is `present0` [1, p + n, width] in the next run, for each layer.
    """
    noise = np.random.default_rng(3)
    stored = [numpy_helper.from_array(noise.standard_normal((WORDS, width)).astype(np.float32), "words")]
    one, axes = (numpy_helper.from_array(np.array(value), name) for name, value in (("one", 1), ("axes", [0, 1])))
    stored += [one, axes, numpy_helper.from_array(np.array(-30, np.float32), "least")]
    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["h0"], name="embed"),
        helper.make_node("Shape", ["ids"], ["n"], start=1, end=2),
        helper.make_node("Shape", ["past0"], ["p"], start=1, end=2),
        helper.make_node("Add", ["n", "p"], ["whole"]),
        helper.make_node("Concat", ["n", "whole"], ["sizes"], axis=0),
        helper.make_node("Expand", ["least", "sizes"], ["full"]),
        helper.make_node("Add", ["p", "one"], ["diagonal"]),
        helper.make_node("Squeeze", ["diagonal"], ["k"]),
        helper.make_node("Trilu", ["full", "k"], ["mask"], upper=1, name="mask"),
    ]
    for layer in range(layers):
        weights = {
            name: noise.standard_normal(shape).astype(np.float32) / np.sqrt(width, dtype=np.float32)
            for name, shape in (("q", (width, width)), ("up", (width, 2 * width)), ("down", (2 * width, width)))
        }
        weights["q"] /= np.sqrt(width, dtype=np.float32)  # scores of order 1: larger ones magnify rounding by layers
        stored += [numpy_helper.from_array(value, f"{name}{layer}") for name, value in weights.items()]
        named: list[tuple[str, list[str], str, dict[str, Any]]] = [
            ("Concat", [f"past{layer}", f"h{layer}"], f"present{layer}", {"axis": 1}),
            ("Transpose", [f"present{layer}"], f"keys{layer}", {"perm": [0, 2, 1]}),
            ("MatMul", [f"h{layer}", f"q{layer}"], f"asked{layer}", {}),
            ("MatMul", [f"asked{layer}", f"keys{layer}"], f"scores{layer}", {}),
            ("Add", [f"scores{layer}", "mask"], f"masked{layer}", {}),
            ("Softmax", [f"masked{layer}"], f"share{layer}", {"axis": -1}),
            ("MatMul", [f"share{layer}", f"present{layer}"], f"seen{layer}", {}),
            ("MatMul", [f"seen{layer}", f"up{layer}"], f"wide{layer}", {}),
            ("Tanh", [f"wide{layer}"], f"bent{layer}", {}),
            ("MatMul", [f"bent{layer}", f"down{layer}"], f"made{layer}", {}),
            ("Add", [f"h{layer}", f"made{layer}"], f"h{layer + 1}", {}),
        ]
        nodes += [helper.make_node(op, given, [made], name=made, **more) for op, given, made, more in named]
    nodes.append(helper.make_node("MatMul", [f"h{layers}", "out"], ["logits"], name="logits"))
    stored.append(numpy_helper.from_array(noise.standard_normal((width, WORDS)).astype(np.float32), "out"))
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "n"])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, "n", WORDS])]
    for layer in range(layers):
        for name, length, to in (("past", "p", inputs), ("present", "w", outputs)):
            to.append(helper.make_tensor_value_info(f"{name}{layer}", TensorProto.FLOAT, [1, length, width]))
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def states(layers: int = 6) -> dict[str, str]:
    """The inputs with the outputs that they are in the next run."""
    return {f"past{layer}": f"present{layer}" for layer in range(layers)}


def empty_states(layers: int = 6, width: int = WIDTH) -> dict[str, np.ndarray]:
    """What the first run of a sequence is given."""
    return {f"past{layer}": np.zeros((1, 0, width), np.float32) for layer in range(layers)}
