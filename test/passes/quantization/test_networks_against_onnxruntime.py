"""tensorrt-features.md#10.16: quantised networks give the integers that onnxruntime gives, up to the scale at their
end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import Array, model_of, run_onnxruntime

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.quantization_notes import notes_in
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_phases


@dataclass
class Graph:
    """An ONNX graph in the making; values are names."""

    activation: str
    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    constants: dict[str, Array] = field(default_factory=dict[str, Array])

    def node(self, op_type: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], name=f"{op_type}_{name}", **attributes))
        return name

    def constant(self, array: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def rounded(self, value: str, scale: float) -> str:
        """A pair of conversions."""
        limits = np.iinfo(self.activation)
        zero = self.rng.integers(int(limits.min), int(limits.max), endpoint=True)
        pair = [self.constant(np.array(scale, np.float32)), self.constant(np.array(zero, self.activation))]
        return self.node("DequantizeLinear", [self.node("QuantizeLinear", [value, *pair]), *pair])

    def weights(self, shape: Sequence[int], axis: int = 0) -> tuple[str, Array]:
        """Dequantised integers with a scale for each slice of an axis, and the scales.

        Sums of two int8 products fit into 16 bits with weights of 7: so kernels agree that saturate there.
        """
        scales = self.rng.uniform(0.005, 0.02, shape[axis]).astype(np.float32)
        integers = self.rng.integers(-63, 64, shape, np.int8)
        operands = [self.constant(array) for array in (integers, scales, np.zeros(shape[axis], np.int8))]
        return self.node("DequantizeLinear", operands, axis=axis), scales

    def bias(self, scales: Array, scale: float) -> str:
        integers = self.rng.integers(-2000, 2000, scales.shape, np.int32)
        steps = (scales * np.float32(scale)).astype(np.float32)
        operands = [self.constant(array) for array in (integers, steps, np.zeros(scales.shape, np.int32))]
        return self.node("DequantizeLinear", operands, axis=0)


def network(activation: str, seed: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Convolutions with bias and rectifier, a maximum pooling between, and a product at the end."""
    graph = Graph(activation, np.random.default_rng(seed))
    x = graph.rounded("x", 0.05)
    kernel, scales = graph.weights((8, 3, 3, 3))
    x = graph.node("Conv", [x, kernel, graph.bias(scales, 0.05)], pads=[1, 1, 1, 1])
    x = graph.rounded(graph.node("Relu", [x]) if activation == "uint8" else x, 0.08)
    x = graph.rounded(graph.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2]), 0.08)
    kernel, scales = graph.weights((8, 2, 3, 3))
    x = graph.node("Conv", [x, kernel, graph.bias(scales, 0.08)], group=4, strides=[2, 2], pads=[1, 0, 1, 2])
    x = graph.rounded(x, 0.1)
    x = graph.rounded(graph.node("Flatten", [x]), 0.1)
    weights, scales = graph.weights((5, 8 * 4 * 4))
    x = graph.rounded(graph.node("Gemm", [x, weights, graph.bias(scales, 0.1)], transB=1), 0.2)
    image = graph.rng.normal(0, 3, (2, 3, 14, 14)).astype(np.float32)
    return model_of(graph.nodes, {"x": ("float32", image.shape)}, [x], graph.constants), {"x": image}


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("activation", ["uint8", "int8"])
def test_every_bit(activation: str, seed: int, target: str) -> None:
    model, feeds = network(activation, seed)
    ctx = RtContext()
    module = import_model(model, ctx)
    run_phases(module, ctx, last="fusion", options=PipelineOptions(target=target))
    assert sum(note.startswith("multiplies bytes") for note in notes_in(module).values()) == 3
    (result,) = interpret(module, ctx, feeds).values()
    (expected,) = run_onnxruntime(model, feeds)
    np.testing.assert_array_equal(result, expected)
