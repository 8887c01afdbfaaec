"""A transformer's layers in half precision: how many launches they are, and that they compute the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.interpreter import interpret
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.phases import pipeline_for
from mlirt.passes.pipeline import run_passes

WIDTH, HEADS = 64, 4
Array = np.ndarray[Any, np.dtype[Any]]


class Writer:
    """Writes one layer of an encoder as exporters do."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.stored: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(0)

    def node(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def constant(self, array: Array) -> str:
        self.stored.append(numpy_helper.from_array(array, f"constant{len(self.stored)}"))
        return self.stored[-1].name

    def number(self, value: float) -> str:
        return self.constant(np.array(value, np.float32))

    def weights(self, *shape: int) -> str:
        return self.constant((self.rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def linear(self, x: str, rows: int, columns: int) -> str:
        return self.node("Add", [self.node("MatMul", [x, self.weights(rows, columns)]), self.weights(columns)])

    def heads(self, x: str, order: list[int]) -> str:
        shape = self.constant(np.array([0, 0, HEADS, WIDTH // HEADS], np.int64))
        return self.node("Transpose", [self.node("Reshape", [x, shape])], perm=order)

    def encoder(self) -> str:
        """Attention with a mask, and the two products behind it with a GELU between them, each with a residual."""
        queries, keys, values = (self.linear("x", WIDTH, WIDTH) for _ in range(3))
        scores = self.node("MatMul", [self.heads(queries, [0, 2, 1, 3]), self.heads(keys, [0, 2, 3, 1])])
        scores = self.node("Add", [self.node("Div", [scores, self.number(4.0)]), "mask"])
        mixed = self.node("MatMul", [self.node("Softmax", [scores], axis=-1), self.heads(values, [0, 2, 1, 3])])
        shape = self.constant(np.array([0, 0, WIDTH], np.int64))
        joined = self.node("Reshape", [self.node("Transpose", [mixed], perm=[0, 2, 1, 3]), shape])
        y = self.node("Add", [self.linear(joined, WIDTH, WIDTH), "x"])
        up = self.linear(y, WIDTH, 2 * WIDTH)
        erf = self.node("Erf", [self.node("Div", [up, self.number(2**0.5)])])
        gelu = self.node("Mul", [self.node("Mul", [up, self.node("Add", [erf, self.number(1.0)])]), self.number(0.5)])
        return self.node("Add", [self.linear(gelu, 2 * WIDTH, WIDTH), y])

    def repeated(self, x: str, length: int) -> str:
        """Each of half as many heads twice."""
        shape = self.constant(np.array([0, 0, HEADS // 2, WIDTH // HEADS], np.int64))
        heads = self.node("Transpose", [self.node("Reshape", [x, shape])], perm=[0, 2, 1, 3])
        apart = self.node("Unsqueeze", [heads, self.constant(np.array([2], np.int64))])
        twice = np.array([2, HEADS // 2, 2, length, WIDTH // HEADS], np.int64)
        joined = self.constant(np.array([2, HEADS, length, WIDTH // HEADS], np.int64))
        return self.node("Reshape", [self.node("Expand", [apart, self.constant(twice)]), joined])

    def decoder(self, length: int) -> str:
        """Causal attention in which two heads share their keys and values; the scale is at the queries."""
        queries = self.node("Mul", [self.linear("x", WIDTH, WIDTH), self.number(0.25)])
        keys, values = (self.repeated(self.linear("x", WIDTH, WIDTH // 2), length) for _ in range(2))
        keys = self.node("Transpose", [keys], perm=[0, 1, 3, 2])
        scores = self.node("MatMul", [self.heads(queries, [0, 2, 1, 3]), keys])
        seen = self.constant(np.tri(length, dtype=np.bool_)[None, None])
        scores = self.node("Where", [seen, scores, self.number(np.finfo(np.float32).min.item())])
        mixed = self.node("MatMul", [self.node("Softmax", [scores], axis=-1), values])
        shape = self.constant(np.array([0, 0, WIDTH], np.int64))
        return self.node("Reshape", [self.node("Transpose", [mixed], perm=[0, 2, 1, 3]), shape])

    def positioned(self, height: int, width: int) -> str:
        """Attention over an image with biases of rows and columns, which are added to scores in five dimensions."""
        count, places = 2 * HEADS, [2 * HEADS, height, width, height, width]
        apart = self.constant(np.array([count, height * width, WIDTH // HEADS], np.int64))
        queries, keys, values = (
            self.node("Reshape", [self.heads(self.linear("x", WIDTH, WIDTH), [0, 2, 1, 3]), apart]) for _ in range(3)
        )
        scores = self.node("MatMul", [queries, self.node("Transpose", [keys], perm=[0, 2, 1])])
        scores = self.node("Reshape", [scores, self.constant(np.array(places, np.int64))])
        for name, axis in (("rows", 4), ("columns", 3)):
            bias = self.node("Unsqueeze", [name, self.constant(np.array([axis], np.int64))])
            scores = self.node("Add", [scores, bias])
        shape = self.constant(np.array([count, height * width, height * width], np.int64))
        weights = self.node("Softmax", [self.node("Reshape", [scores, shape])], axis=-1)
        return self.node("MatMul", [weights, values])


def encoder(batch: int | str, length: int | str) -> onnx.ModelProto:
    writer = Writer()
    result = writer.encoder()
    inputs = [
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [batch, length, WIDTH]),
        helper.make_tensor_value_info("mask", onnx.TensorProto.FLOAT, [batch, 1, 1, length]),
    ]
    return model(writer, inputs, result)


def decoder(length: int) -> onnx.ModelProto:
    writer = Writer()
    result = writer.decoder(length)
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, length, WIDTH])]
    return model(writer, inputs, result)


def model(writer: Writer, inputs: list[onnx.ValueInfoProto], result: str) -> onnx.ModelProto:
    graph = helper.make_graph(writer.nodes, "network", inputs, [onnx.ValueInfoProto(name=result)], writer.stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


@pytest.mark.parametrize(("batch", "length"), [(2, 9), ("n", "m")])
def test_encoder(batch: int | str, length: int | str) -> None:
    context = RtContext()
    module = import_model(encoder(batch, length), context)
    rng = np.random.default_rng(1)
    inputs = {
        "x": rng.standard_normal((2, 9, WIDTH)).astype(np.float32),
        "mask": np.where(rng.random((2, 1, 1, 9)) < 0.3, -1e4, 0).astype(np.float32),
    }
    launches = fused(module, context, inputs)
    conversions = launches.pop("fused.pointwise", 0)
    assert launches == {"fused.matmul": 4, "fused.attention": 1}
    assert conversions <= 3  # of the inputs and the result


def test_decoder() -> None:
    context = RtContext()
    module = import_model(decoder(9), context)
    inputs = {"x": np.random.default_rng(1).standard_normal((2, 9, WIDTH)).astype(np.float32)}
    launches = fused(module, context, inputs)
    assert launches["fused.attention"] == 1
    assert launches["fused.matmul"] == 1
    assert launches["fused.pointwise"] <= 2  # conversions of the input and the result
    (op,) = (op for op in module.walk() if isinstance(op, AttentionOp))
    assert op.last_key is not None
    assert not op.extras


def test_positions_in_an_image() -> None:
    context, writer, (height, width) = RtContext(), Writer(), (3, 5)
    result = writer.positioned(height, width)
    shapes = {
        "x": [2, height * width, WIDTH],
        "rows": [2 * HEADS, height, width, height],
        "columns": [2 * HEADS, height, width, width],
    }
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    module, rng = import_model(model(writer, infos, result), context), np.random.default_rng(1)
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    launches = fused(module, context, inputs)
    assert launches["fused.attention"] == 1
    assert "fused.softmax" not in launches


def fused(module: ModuleOp, context: RtContext, inputs: dict[str, Array]) -> Counter[str]:
    """How many ops of each kind the fusion for a GPU in half precision leaves; they compute what the network does."""
    expected = interpret(module, context, inputs)
    for _, passes in pipeline_for("cuda", "fp16", last="fusion"):
        run_passes(module, context, ",".join(passes))
    found = interpret(module, context, inputs)
    for name, want in expected.items():
        np.testing.assert_allclose(found[name], want, rtol=0, atol=2e-2)
    return Counter(op.name for op in module.walk() if isinstance(op, FusedOp) and not isinstance(op, ViewOp))
