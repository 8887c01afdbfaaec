"""A small decoder of random weights as ONNX, in the form in which language models are exported for onnxruntime.

Run it with `python examples/decoder_network.py decoder.onnx [--bits 4]`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_MS = "com.microsoft"
_BLOCK = 32


@dataclass(frozen=True)
class Sizes:
    """What a decoder is made of; `bits` is 32, or 4 or 8 for packed weights (sizes are then multiples of 32)."""

    layers: int = 2
    heads: int = 4
    key_heads: int = 2
    head_width: int = 32
    hidden: int = 256
    vocabulary: int = 320
    longest: int = 512
    bits: int = 32

    @property
    def width(self) -> int:
        return self.heads * self.head_width


@dataclass
class _Graph:
    sizes: Sizes
    random: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    stored: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])

    def store(self, name: str, array: np.ndarray[Any, np.dtype[Any]]) -> str:
        self.stored.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op: str, inputs: list[str], output: str | list[str], domain: str = "", **attributes: Any) -> str:
        outputs = [output] if isinstance(output, str) else output
        self.nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], domain=domain, **attributes))
        return outputs[0]

    def weight(self, rows: int, columns: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return (self.random.normal(size=(rows, columns)) / np.sqrt(columns)).astype(np.float32)

    def norm_weight(self, name: str) -> str:
        return self.store(name, (1 + 0.1 * self.random.normal(size=self.sizes.width)).astype(np.float32))

    def product(self, x: str, name: str, rows: int, columns: int) -> str:
        """`x W^T` for W [rows, columns], packed where the sizes say so."""
        weight, bits = self.weight(rows, columns), self.sizes.bits
        if bits == 32:
            return self.node("MatMul", [x, self.store(f"{name}.weight", np.ascontiguousarray(weight.T))], name)
        packed, scales = _packed(weight, bits)
        given = [x, self.store(f"{name}.weight", packed), self.store(f"{name}.scales", scales.reshape(-1))]
        return self.node(
            "MatMulNBits", given, name, _MS, N=rows, K=columns, bits=bits, block_size=_BLOCK, accuracy_level=1
        )


def _packed(
    weight: np.ndarray[Any, np.dtype[np.float32]], bits: int
) -> tuple[np.ndarray[Any, np.dtype[np.uint8]], np.ndarray[Any, np.dtype[np.float32]]]:
    """[N, K] as bytes [N, K / 32, 4 * bits] and scales [N, K / 32]; the middle number stands for 0."""
    blocks = weight.reshape(weight.shape[0], -1, _BLOCK)
    middle = 1 << (bits - 1)
    scales = np.abs(blocks).max(-1) / (middle - 1)
    codes = np.asarray(np.round(blocks / scales[..., None]) + middle, np.uint8)
    packed = codes if bits == 8 else codes[..., ::2] | (codes[..., 1::2] << np.uint8(4))
    return packed, scales.astype(np.float32)


def decoder(sizes: Sizes | None = None, seed: int = 0) -> onnx.ModelProto:
    """A decoder with a cache of keys and values.

    Inputs are `input_ids` [batch, words], `attention_mask` [batch, all words] and for each layer
    `past_key_values.<layer>.key` and `.value` [batch, heads, earlier words, width]; outputs `logits`
    [batch, words, vocabulary] and `present.<layer>.key` and `.value`.
    """
    sizes = sizes or Sizes()
    graph = _Graph(sizes, np.random.default_rng(seed))
    _lengths(graph)
    x = _embedded(graph)
    added = ""
    for layer in range(sizes.layers):
        x, added = _layer(graph, f"layers.{layer}", layer, x, added)
    final = graph.norm_weight("norm.weight")
    graph.node("SkipSimplifiedLayerNormalization", [x, added, final], "norm", _MS, epsilon=1e-5)
    graph.product("norm", "logits", sizes.vocabulary, sizes.width)
    return _model(graph)


def _lengths(graph: _Graph) -> None:
    one, axis = graph.store("one", np.array([1], np.int64)), graph.store("axis", np.array(1, np.int64))
    graph.node("ReduceSum", ["attention_mask", one], "words")
    graph.node("Sub", ["words", one], "last")
    graph.node("Cast", ["last"], "seqlens_k", to=TensorProto.INT32)
    graph.node("Shape", ["attention_mask"], "mask_shape")
    graph.node("Gather", ["mask_shape", axis], "total", axis=0)
    graph.node("Cast", ["total"], "total_length", to=TensorProto.INT32)
    half = graph.sizes.head_width // 2
    angles = np.arange(graph.sizes.longest)[:, None] / 10000 ** (np.arange(half) / half)
    graph.store("cos_cache", np.cos(angles).astype(np.float32))
    graph.store("sin_cache", np.sin(angles).astype(np.float32))


def _embedded(graph: _Graph) -> str:
    sizes = graph.sizes
    table = graph.weight(sizes.vocabulary, sizes.width) * np.float32(np.sqrt(sizes.width))
    if sizes.bits == 32:
        return graph.node("Gather", [graph.store("embedding", table), "input_ids"], "embedded")
    packed, scales = _packed(table, sizes.bits)
    given = [graph.store("embedding", packed.reshape(sizes.vocabulary, -1)), "input_ids"]
    attributes = {"bits": sizes.bits, "block_size": _BLOCK, "quantize_axis": 1, "gather_axis": 0}
    return graph.node(
        "GatherBlockQuantized", [*given, graph.store("embedding.scales", scales)], "embedded", _MS, **attributes
    )


def _layer(graph: _Graph, name: str, layer: int, x: str, added: str) -> tuple[str, str]:
    """Attention and a gated product; the sum so far and what is to be added to it come out."""
    sizes = graph.sizes
    weight = graph.norm_weight(f"{name}.input.weight")
    if added:
        outputs = [f"{name}.input", "", "", f"{name}.sum"]
        graph.node("SkipSimplifiedLayerNormalization", [x, added, weight], outputs, _MS, epsilon=1e-5)
        x = f"{name}.sum"
    else:
        graph.node("SimplifiedLayerNormalization", [x, weight], f"{name}.input", axis=-1, epsilon=1e-5)
    keys = sizes.key_heads * sizes.head_width
    parts = [
        graph.product(f"{name}.input", f"{name}.{part}", rows, sizes.width)
        for part, rows in (("q", sizes.width), ("k", keys), ("v", keys))
    ]
    past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
    present = [f"present.{layer}.{part}" for part in ("key", "value")]
    graph.node(
        "GroupQueryAttention",
        [*parts, *past, "seqlens_k", "total_length", "cos_cache", "sin_cache"],
        [f"{name}.attention", *present],
        _MS,
        num_heads=sizes.heads,
        kv_num_heads=sizes.key_heads,
        do_rotary=1,
    )
    mixed = graph.product(f"{name}.attention", f"{name}.o", sizes.width, sizes.width)
    outputs = [f"{name}.post", "", "", f"{name}.middle"]
    given = [x, mixed, graph.norm_weight(f"{name}.post.weight")]
    graph.node("SkipSimplifiedLayerNormalization", given, outputs, _MS, epsilon=1e-5)
    gate, up = (graph.product(f"{name}.post", f"{name}.{part}", sizes.hidden, sizes.width) for part in ("gate", "up"))
    graph.node("Sigmoid", [gate], f"{name}.sigmoid")
    graph.node("Mul", [gate, f"{name}.sigmoid"], f"{name}.silu")
    graph.node("Mul", [f"{name}.silu", up], f"{name}.gated")
    return f"{name}.middle", graph.product(f"{name}.gated", f"{name}.down", sizes.width, sizes.hidden)


def _model(graph: _Graph) -> onnx.ModelProto:
    sizes = graph.sizes
    inputs = [
        helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "words"]),
        helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "total"]),
    ]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "words", sizes.vocabulary])]
    for layer in range(sizes.layers):
        for part in ("key", "value"):
            for kind, length, infos in (("past_key_values", "past", inputs), ("present", "total", outputs)):
                shape = ["batch", sizes.key_heads, length, sizes.head_width]
                infos.append(helper.make_tensor_value_info(f"{kind}.{layer}.{part}", TensorProto.FLOAT, shape))
    made = helper.make_graph(graph.nodes, "decoder", inputs, outputs, graph.stored)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(_MS, 1)]
    return helper.make_model(made, opset_imports=imports, ir_version=10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--bits", type=int, choices=(4, 8, 32), default=32)
    given = parser.parse_args()
    Path(given.file).write_bytes(decoder(Sizes(bits=given.bits)).SerializeToString())


if __name__ == "__main__":
    main()
