"""An encoder whose mask has dimensions of other names: each way that exporters give names makes an engine as fast."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from broadcast_models import build
from onnx import helper
from onnx_models import Array, model_of

import mlirt

HEADS, WORDS = 2, 50


@dataclass
class Encoder:
    """Writes the nodes of an encoder as exporters do."""

    width: int
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    weights: dict[str, Array] = field(default_factory=dict[str, Array])

    def add(self, op_type: str, *inputs: str | Array, **attributes: Any) -> str:
        names = [one if isinstance(one, str) else self.weight(one) for one in inputs]
        result = f"{op_type}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, names, [result], name=result, **attributes))
        return result

    def weight(self, array: Array) -> str:
        self.weights[f"w{len(self.weights)}"] = array
        return f"w{len(self.weights) - 1}"

    def linear(self, x: str, rows: int, columns: int) -> str:
        random = np.random.default_rng(len(self.weights))
        matrix = (random.normal(size=(rows, columns)) / np.sqrt(rows)).astype(np.float32)
        return self.add("Add", self.add("MatMul", x, matrix), random.normal(size=columns).astype(np.float32))

    def square(self, x: str) -> str:
        return self.linear(x, self.width, self.width)

    def heads(self, x: str, permutation: list[int]) -> str:
        split = self.add("Reshape", self.square(x), np.array([0, 0, HEADS, self.width // HEADS]))
        return self.add("Transpose", split, perm=permutation)

    def layer(self, x: str, mask: str) -> str:
        scores = self.add("MatMul", self.heads(x, [0, 2, 1, 3]), self.heads(x, [0, 2, 3, 1]))
        shown = self.add("Softmax", self.add("Add", self.add("Div", scores, np.array(4, np.float32)), mask))
        mixed = self.add("MatMul", shown, self.heads(x, [0, 2, 1, 3]))
        joined = self.add("Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]), np.array([0, 0, self.width]))
        after = self.add("Add", x, self.square(joined))
        wide = self.add("Relu", self.linear(after, self.width, 48))
        return self.add("Add", after, self.linear(wide, 48, self.width))


def encoder(mask_dims: list[str], width: int = 16) -> onnx.ModelProto:
    """Two layers; the input is tokens and which of them count."""
    made = Encoder(width)
    words = np.random.default_rng(0).normal(size=(WORDS, width)).astype(np.float32)
    x = made.add("Gather", words, "ids")
    wide = made.add("Unsqueeze", made.add("Cast", "mask", to=onnx.TensorProto.FLOAT), np.array([1, 2]))
    hidden = made.add("Mul", made.add("Sub", np.array(1, np.float32), wide), np.array(-1e4, np.float32))
    for _ in range(2):
        x = made.layer(x, hidden)
    inputs = {"ids": ("int64", ["b", "s"]), "mask": ("int64", mask_dims)}
    return model_of(made.nodes, inputs, [x], made.weights)


def feeds(tokens: tuple[int, int], mask: tuple[int, int]) -> dict[str, Array]:
    random = np.random.default_rng(sum(tokens))
    shown = random.integers(0, 2, mask)
    shown[:, 0] = 1
    return {"ids": random.integers(0, WORDS, tokens), "mask": shown}


@pytest.mark.parametrize("mask_dims", [["masks", "s"], ["masks", "columns"]])
def test_batches_of_other_names(mask_dims: list[str]) -> None:
    built = build(encoder(mask_dims))
    for tokens, mask in (((2, 3), (2, 3)), ((2, 3), (1, 3)), ((1, 3), (2, 3)), ((1, 1), (1, 1))):
        built.check(feeds(tokens, mask))
    if mask_dims[1] == "columns":
        built.check(feeds((2, 3), (2, 1)))
    for tokens, mask in (((2, 3), (3, 3)), ((2, 3), (2, 2)), ((2, 1), (2, 3))):
        built.refuse(feeds(tokens, mask), "Add|mask|MatMul")


def test_layers_are_computed_together_whatever_the_names() -> None:
    """What equal names give, a copy of the tokens, and the mask for runs that repeat its columns or do not."""
    plain, other = (mlirt.compile(encoder(dims, 32), "cpu") for dims in (["b", "s"], ["masks", "columns"]))
    assert len(other.layers) == len(plain.layers) + 2
    names = [str(layer["name"]) for layer in other.layers]
    assert sum("Softmax" in name and "MatMul" in name for name in names) == 2
