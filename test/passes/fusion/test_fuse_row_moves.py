"""Moves of rows in a random order: what a gather of rows gives is what the layers gave, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.gather import GatherOp
from mlirt.dialects.interpreter import interpret
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.phases import pipeline_for
from mlirt.passes.pipeline import run_passes


class _Network:
    """Layers that move rows of 24 numbers, in any order."""

    def __init__(self, seed: int, *, is_open: bool) -> None:
        self.random, self.is_open = np.random.default_rng(seed), is_open
        self.shape = [3, *(int(one) for one in self.random.choice([2, 4, 6], 2)), 24]
        self.nodes, self.constants, self.name = list[onnx.NodeProto](), list[onnx.TensorProto](), "x"
        self.first = list(self.shape)

    def constant(self, *numbers: int) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(numbers, np.int64), name))
        return name

    def layer(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def roll(self) -> None:
        axis = int(self.random.integers(1 if self.is_open else 0, len(self.shape) - 1))
        by = int(self.random.integers(1, self.shape[axis])) if self.shape[axis] > 1 else 0
        axes = self.constant(axis)
        tail = self.layer("Slice", self.name, self.constant(by), self.constant(2**31), axes)
        head = self.layer("Slice", self.name, self.constant(0), self.constant(by), axes)
        self.name = self.layer("Concat", tail, head, axis=axis) if by else self.name

    def windows(self) -> None:
        """Two by two places of an image side by side, as rows or as channels."""
        count, height, width, channels = self.shape
        split = [-1 if self.is_open else count, height // 2, 2, width // 2, 2, channels]
        if height % 2 or width % 2:
            return
        parts = self.layer(
            "Transpose", self.layer("Reshape", self.name, self.constant(*split)), perm=[0, 1, 3, 2, 4, 5]
        )
        self.shape = [count, height // 2, width * 2, channels]
        self.name = self.layer("Reshape", parts, self.constant(-1, *self.shape[1:]))

    def merge(self) -> None:
        count, height, width, channels = self.shape
        if height % 2 or width % 2:
            return
        ends, axes, steps = self.constant(2**31, 2**31), self.constant(1, 2), self.constant(2, 2)
        starts = self.random.permutation([(0, 0), (1, 0), (0, 1), (1, 1)])
        places = [self.constant(int(y), int(x)) for y, x in starts]
        parts = [self.layer("Slice", self.name, start, ends, axes, steps) for start in places]
        self.shape, self.name = [count, height // 2, width // 2, 4 * channels], self.layer("Concat", *parts, axis=3)

    def model(self) -> onnx.ModelProto:
        for number in self.random.integers(0, 3, 4):
            (self.roll, self.windows, self.merge)[number]()
        self.roll()
        lengths = ["n" if self.is_open else self.first[0], *self.first[1:]]
        x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, lengths)
        self.nodes.append(helper.make_node("Neg", [self.name], ["y"]))
        graph = helper.make_graph(self.nodes, "moves", [x], [onnx.ValueInfoProto(name="y")], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("is_open", [False, True])
def test_moves_in_a_random_order(is_open: bool, target: str) -> None:
    gathers = 0
    for seed in range(12):
        network, context = _Network(seed, is_open=is_open), RtContext()
        model = network.model()
        module = import_model(model, context)
        inputs = {"x": network.random.standard_normal(network.first).astype(np.float32)}
        expected = interpret(module, context, inputs)["y"]
        for _, passes in pipeline_for(target, "fp32", last="fusion"):
            run_passes(module, context, ",".join(passes))
        gathers += sum(isinstance(op, GatherOp) for op in module.walk())
        np.testing.assert_array_equal(interpret(module, context, inputs)["y"], expected)
    assert gathers > 6
