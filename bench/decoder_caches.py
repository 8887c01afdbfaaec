"""Decoders whose caches grow by a word with each run, as exporters write them: the three of `bench/growth.py lengths`.

- grouped: GroupQueryAttention of onnxruntime's model builder (examples/decoder_network.py).
- concatenated: the same with caches joined by Concat, keys expanded for their heads, and attention spelled out.
- whole: the same without caches, which reads all words again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.append(str(Path(__file__).parents[1] / "examples"))

from decoder_network import Sizes, decoder

Feeds = dict[str, np.ndarray[Any, np.dtype[Any]]]
CACHES = ("grouped", "concatenated", "whole")


def decoder_with(cache: str, sizes: Sizes) -> onnx.ModelProto:
    """A decoder of these sizes with one of `CACHES`."""
    model = decoder(sizes)
    if cache == "grouped":
        return model
    graph, has_past = model.graph, cache == "concatenated"
    nodes = list(graph.node)
    made: list[onnx.NodeProto] = _mask(has_past)
    for node in nodes:
        if node.op_type == "GroupQueryAttention":
            made += _attention(node, sizes, has_past)
        elif node.op_type not in ("ReduceSum", "Sub", "Shape") and node.name not in _LENGTHS:
            made.append(node)
    kept = [one for one in graph.input if has_past or not one.name.startswith("past")]
    outputs = [one for one in graph.output if has_past or one.name == "logits"]
    inputs = [one for one in kept if one.name != "attention_mask"]
    stored = [one for one in graph.initializer if one.name not in ("one", "axis", "cos_cache", "sin_cache")]
    stored += [numpy_helper.from_array(array, name) for name, array in _constants(sizes).items()]
    found = helper.make_graph(made, "decoder", inputs, outputs, stored)
    return helper.make_model(found, opset_imports=list(model.opset_import), ir_version=10)


def feeds_of(cache: str, sizes: Sizes, length: int) -> Feeds:
    """Inputs for the word behind `length` others, whose caches hold one number all over."""
    fresh = length + 1 if cache == "whole" else 1
    feeds: Feeds = {"input_ids": np.ones((1, fresh), np.int64)}
    if cache == "grouped":
        feeds["attention_mask"] = np.ones((1, length + 1), np.int64)
    if cache != "whole":
        shape = (1, sizes.key_heads, length, sizes.head_width)
        for layer in range(sizes.layers):
            for part in ("key", "value"):
                feeds[f"past_key_values.{layer}.{part}"] = np.full(shape, 0.25, np.float32)
    return feeds


_LENGTHS = ("last", "seqlens_k", "mask_shape", "total", "total_length")


def _constants(sizes: Sizes) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    heads, keys, width = sizes.heads, sizes.key_heads, sizes.head_width
    return {
        "by_heads": np.array([0, 0, heads, width], np.int64),
        "by_key_heads": np.array([0, 0, keys, width], np.int64),
        "joined": np.array([0, 0, heads * width], np.int64),
        "all_heads": np.array([0, heads, -1, width], np.int64),
        "expanded": np.array([1, 1, heads // keys, 1, 1], np.int64),
        "second": np.array([2], np.int64),
        "scale": np.array(1 / np.sqrt(width), np.float32),
        "masked": np.array(-1e9, np.float32),
        "nothing": np.array(0, np.float32),
        "from": np.array(0, np.int64),
        "step": np.array(1, np.int64),
        "rows": np.array([1], np.int64),
        "third": np.array(2, np.int64),
    }


def _node(op: str, inputs: Sequence[str], output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, list(inputs), [output], name=output, **attributes)


def _mask(has_past: bool) -> list[onnx.NodeProto]:
    """0 where a word sees another one, and a large negative number where that comes later: [words, all words]."""
    nodes = [_node("Shape", ["input_ids"], "word_shape"), _node("Gather", ["word_shape", "step"], "new")]
    if has_past:
        nodes += [
            _node("Shape", ["past_key_values.0.key"], "past_shape"),
            _node("Gather", ["past_shape", "third"], "old"),
            _node("Add", ["old", "new"], "all"),
        ]
    old, everything = ("old", "all") if has_past else ("from", "new")
    return [
        *nodes,
        _node("Range", [old, everything, "step"], "places"),
        _node("Range", ["from", everything, "step"], "key_places"),
        _node("Unsqueeze", ["places", "rows"], "places_down"),
        _node("Greater", ["key_places", "places_down"], "is_later"),
        _node("Where", ["is_later", "masked", "nothing"], "mask"),
    ]


def _attention(node: onnx.NodeProto, sizes: Sizes, has_past: bool) -> list[onnx.NodeProto]:
    """GroupQueryAttention without rotation as the operators that it stands for."""
    output = node.output[0]
    made: list[onnx.NodeProto] = []

    def add(op: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        made.append(_node(op, inputs, name, **attributes))
        return name

    def split(source: str, shape: str, name: str) -> str:
        rows = add("Reshape", [source, shape], f"{name}.rows")
        return add("Transpose", [rows], f"{name}.heads", perm=[0, 2, 1, 3])

    query = split(node.input[0], "by_heads", f"{output}.query")
    whole: list[str] = []
    for source, past, present in zip(node.input[1:3], node.input[3:5], node.output[1:3], strict=True):
        name = f"{output}.{source}"
        fresh = split(source, "by_key_heads", name)
        if has_past:
            fresh = add("Concat", [past, fresh], present, axis=2)
        wide = add("Unsqueeze", [fresh, "second"], f"{name}.wide")
        wide = add("Tile", [wide, "expanded"], f"{name}.tiled")
        whole.append(add("Reshape", [wide, "all_heads"], f"{name}.all"))
    transposed = add("Transpose", [whole[0]], f"{output}.transposed", perm=[0, 1, 3, 2])
    scores = add("MatMul", [query, transposed], f"{output}.scores")
    scores = add("Mul", [scores, "scale"], f"{output}.scaled")
    scores = add("Add", [scores, "mask"], f"{output}.masked")
    weights = add("Softmax", [scores], f"{output}.weights", axis=-1)
    mixed = add("MatMul", [weights, whole[1]], f"{output}.mixed")
    mixed = add("Transpose", [mixed], f"{output}.back", perm=[0, 2, 1, 3])
    add("Reshape", [mixed, "joined"], output)
    return made
