"""BERT's encoder (base: 12 layers, 768 wide, 12 heads) as an ONNX graph, layer for layer that of torch_networks.py.

With a head for questions, too, in the sizes of base and large: what SQuAD asks of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx
from graph_writer import GraphWriter, floats, integers

# What the additive mask puts on padding: large, and still a number in half precision.
MASKED = -10000.0


@dataclass(frozen=True)
class BertSizes:
    """The sizes of BERT base."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    hidden: int = 3072
    length: int = 128
    vocabulary: int = 30522
    positions: int = 512
    open_length: str = ""
    """The name of the length, where a run decides about it."""


def bert_base(batch: int | str = "batch", seed: int = 0, sizes: BertSizes | None = None) -> onnx.ModelProto:
    """Token ids, mask and segment ids [batch, length] to the last hidden state [batch, length, width]."""
    sizes = sizes or BertSizes()
    write = BertWriter(seed, sizes)
    mask = write.mask()
    x = write.embeddings()
    for layer in range(sizes.layers):
        x = write.layer(x, mask, f"layers.{layer}", "last_hidden_state" if layer == sizes.layers - 1 else "")
    length = sizes.open_length or sizes.length
    inputs = [integers(name, batch, length) for name in ("input_ids", "attention_mask", "token_type_ids")]
    return write.model("bert_base", inputs, [floats("last_hidden_state", batch, length, sizes.width)])


BASE_QUESTIONS = BertSizes(length=384)
LARGE_QUESTIONS = BertSizes(layers=24, width=1024, heads=16, hidden=4096, length=384)


def bert_questions(batch: int | str = "batch", seed: int = 0, sizes: BertSizes = BASE_QUESTIONS) -> onnx.ModelProto:
    """Token ids, mask and segment ids [batch, length] to the scores of an answer's first and last token.

    The output `logits` is [batch, length, 2].
    """
    write = BertWriter(seed, sizes)
    mask = write.mask()
    x = write.embeddings()
    for layer in range(sizes.layers):
        x = write.layer(x, mask, f"layers.{layer}")
    bias = write.normal("questions.bias", (2,), 0.02)
    write.node(
        "Add", [write.node("MatMul", [x, write.normal("questions.weight", (sizes.width, 2), 0.1)]), bias], "logits"
    )
    tokens = sizes.open_length or sizes.length
    inputs = [integers(name, batch, tokens) for name in ("input_ids", "attention_mask", "token_type_ids")]
    return write.model("bert_questions", inputs, [floats("logits", batch, tokens, 2)])


class BertWriter(GraphWriter):
    """Adds the parts of a BERT encoder."""

    def __init__(self, seed: int, sizes: BertSizes) -> None:
        super().__init__(seed)
        self._sizes = sizes

    def mask(self) -> str:
        """What is added to scores: 0 for tokens, a large negative number for padding; [batch, 1, 1, length]."""
        axes = self.constant("mask_axes", np.array([1, 2], np.int64))
        mask = self.node("Cast", [self.node("Unsqueeze", ["attention_mask", axes])], to=onnx.TensorProto.FLOAT)
        absent = self.node("Sub", [self.scalar("one", 1.0), mask])
        return self.node("Mul", [absent, self.scalar("masked", MASKED)], "mask")

    def embeddings(self) -> str:
        """Words, positions and segments, normalized."""
        sizes = self._sizes
        tables = {"words": sizes.vocabulary, "positions": sizes.positions, "segments": 2}
        weights = {name: self.normal(f"{name}.weight", (rows, sizes.width), 0.02) for name, rows in tables.items()}
        words = self.node("Gather", [weights["words"], "input_ids"])
        segments = self.node("Gather", [weights["segments"], "token_type_ids"])
        sums = self.node("Add", [words, segments])
        return self.normalized(self.node("Add", [sums, self._positions(weights["positions"])]), "norm")

    def _positions(self, table: str) -> str:
        """The first rows of the table, as many as there are tokens."""
        if not self._sizes.open_length:
            places = self.constant("places", np.arange(self._sizes.length, dtype=np.int64)[None])
            return self.node("Gather", [table, places])
        zero, one, two = (self.constant(f"number_{n}", np.array([n], np.int64)) for n in range(3))
        tokens = self.node("Slice", [self.node("Shape", ["input_ids"]), one, two])
        return self.node("Slice", [table, zero, tokens, zero])

    def layer(self, x: str, mask: str, name: str, output: str = "") -> str:
        """Attention and the network of two layers, each added to its input and normalized."""
        width, hidden = self._sizes.width, self._sizes.hidden
        x = self.normalized(self.node("Add", [self.attention(x, mask, name), x]), f"{name}.attention_norm")
        y = self.gelu(self.linear(x, (width, hidden), f"{name}.up"))
        y = self.linear(y, (hidden, width), f"{name}.down")
        return self.normalized(self.node("Add", [y, x]), f"{name}.norm", output)

    def attention(self, x: str, mask: str, name: str) -> str:
        """Scaled dot-product attention with all heads."""
        width = self._sizes.width
        query, key, value = (self.linear(x, (width, width), f"{name}.{part}") for part in ("query", "key", "value"))
        scale = self.scalar("scale", math.sqrt(width // self._sizes.heads))
        scores = self.node("MatMul", [self._heads(query, [0, 2, 1, 3]), self._heads(key, [0, 2, 3, 1])])
        scores = self.node("Add", [self.node("Div", [scores, scale]), mask])
        mixed = self.node("MatMul", [self.node("Softmax", [scores], axis=-1), self._heads(value, [0, 2, 1, 3])])
        shape = self.constant("joined", np.array([0, 0, width], np.int64))
        joined = self.node("Reshape", [self.node("Transpose", [mixed], perm=[0, 2, 1, 3]), shape])
        return self.linear(joined, (width, width), f"{name}.out")

    def _heads(self, x: str, order: list[int]) -> str:
        heads = self._sizes.heads
        shape = self.constant("split", np.array([0, 0, heads, self._sizes.width // heads], np.int64))
        return self.node("Transpose", [self.node("Reshape", [x, shape])], perm=order)

    def linear(self, x: str, sizes: tuple[int, int], name: str) -> str:
        """A matrix product and a bias; the weight is stored [inputs, outputs]."""
        product = self.node("MatMul", [x, self.normal(f"{name}.weight", sizes, 0.02)], name)
        return self.node("Add", [product, self.normal(f"{name}.bias", (sizes[1],), 0.02)])

    def gelu(self, x: str) -> str:
        """x * (1 + erf(x / sqrt 2)) / 2."""
        erf = self.node("Erf", [self.node("Div", [x, self.scalar("root_two", math.sqrt(2))])])
        product = self.node("Mul", [x, self.node("Add", [erf, self.scalar("one", 1.0)])])
        return self.node("Mul", [product, self.scalar("half", 0.5)])

    def normalized(self, x: str, name: str, output: str = "") -> str:
        """Layer normalization over the last axis."""
        width = self._sizes.width
        scale = self.uniform(f"{name}.weight", (width,), 0.9, 1.1)
        shift = self.normal(f"{name}.bias", (width,), 0.02)
        return self.node("LayerNormalization", [x, scale, shift], output or name, axis=-1, epsilon=1e-12)
