"""PyTorch's attention has sequences first inside: how many launches it is, in whichever order its caller has them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.interpreter import interpret
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.phases import pipeline_for
from mlirt.passes.pipeline import run_passes

HEADS, DEPTH = 3, 16
WIDTH = HEADS * DEPTH
Array = np.ndarray[Any, np.dtype[Any]]


class Writer:
    """Writes nodes and weights."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.stored: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(0)

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, array: Array) -> str:
        self.stored.append(numpy_helper.from_array(array, f"constant{len(self.stored)}"))
        return self.stored[-1].name

    def shape(self, x: str, *sizes: int) -> str:
        return self.node("Reshape", x, self.constant(np.array(sizes, np.int64)))

    def linear(self, x: str, columns: int) -> str:
        weights = (self.rng.standard_normal((WIDTH, columns)) / np.sqrt(WIDTH)).astype(np.float32)
        bias = self.constant(self.rng.standard_normal(columns).astype(np.float32))
        return self.node("Add", self.node("MatMul", x, self.constant(weights)), bias)

    def attention(self, x: str, batch: int, length: int) -> str:
        """Of sequences that come first; the batch and the heads are one dimension in it."""
        parts = self.shape(self.linear(x, 3 * WIDTH), length, batch, 3, WIDTH)
        parts = self.node("Transpose", self.shape(parts, 1, length, batch, 3, WIDTH), perm=[3, 1, 2, 0, 4])
        each = [
            self.node("Gather", self.shape(parts, 3, length, batch, WIDTH), self.constant(np.array(part)), axis=0)
            for part in range(3)
        ]
        queries, keys, values = (
            self.node("Transpose", self.shape(one, length, batch * HEADS, DEPTH), perm=[1, 0, 2]) for one in each
        )
        scale = self.constant(np.array(DEPTH**-0.5, np.float32))
        scores = self.node("MatMul", self.node("Mul", queries, scale), self.node("Transpose", keys, perm=[0, 2, 1]))
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), values)
        joined = self.shape(self.node("Transpose", mixed, perm=[1, 0, 2]), length * batch, WIDTH)
        return self.shape(self.linear(joined, WIDTH), length, batch, WIDTH)


def network(batch: int, length: int, batch_first: bool) -> onnx.ModelProto:
    """What `torch.nn.MultiheadAttention` computes, added to its input."""
    writer = Writer()
    x = writer.node("Transpose", "x", perm=[1, 0, 2]) if batch_first else "x"
    y = writer.attention(x, batch, length)
    y = writer.node("Transpose", y, perm=[1, 0, 2]) if batch_first else y
    result = writer.node("Add", y, "x")
    shape = [batch, length, WIDTH] if batch_first else [length, batch, WIDTH]
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)]
    graph = helper.make_graph(writer.nodes, "network", inputs, [onnx.ValueInfoProto(name=result)], writer.stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


@pytest.mark.parametrize(("target", "precision"), [("cuda", "fp16"), ("cpu", "fp32")])
@pytest.mark.parametrize(("batch", "length"), [(5, 7), (1, 7), (2, 4)])
@pytest.mark.parametrize("batch_first", [False, True])
def test_attention_is_one_launch_between_two_products(
    batch_first: bool, batch: int, length: int, target: str, precision: str
) -> None:
    context = RtContext()
    module = import_model(network(batch, length, batch_first), context)
    shape = (batch, length, WIDTH) if batch_first else (length, batch, WIDTH)
    inputs = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    expected = interpret(module, context, inputs)
    for _, passes in pipeline_for(target, precision, last="fusion"):
        run_passes(module, context, ",".join(passes))
    found = interpret(module, context, inputs)
    for name, want in expected.items():
        np.testing.assert_allclose(found[name], want, rtol=0, atol=2e-2 if precision == "fp16" else 2e-6)
    launches = Counter(op.name for op in module.walk() if isinstance(op, FusedOp) and not isinstance(op, ViewOp))
    conversions = launches.pop("fused.pointwise", 0)
    assert launches == {"fused.matmul": 2, "fused.attention": 1}
    assert conversions <= (2 if precision == "fp16" else 0)  # of the input and the result
