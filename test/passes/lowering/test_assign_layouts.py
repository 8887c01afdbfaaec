"""Blocked layouts change where elements lie and never what they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_passes

Nodes = tuple[list[onnx.NodeProto], list[onnx.TensorProto]]


def weights(name: str, *shape: int) -> onnx.TensorProto:
    values = np.random.default_rng(len(name) + sum(shape)).standard_normal(shape).astype(np.float32) * 0.3
    return numpy_helper.from_array(values, name)


def convolution(source: str, result: str, kernel: str, size: int, groups: int = 1, stride: int = 1) -> onnx.NodeProto:
    return helper.make_node(
        "Conv",
        [source, kernel],
        [result],
        kernel_shape=[size, size],
        pads=[size // 2] * 4,
        group=groups,
        strides=[stride, stride],
    )


def residual() -> Nodes:
    """Two padded convolutions, an activation, and an addition around them."""
    nodes = [
        convolution("x", "a", "k0", 3),
        helper.make_node("Relu", ["a"], ["b"]),
        convolution("b", "c", "k1", 3),
        helper.make_node("Add", ["a", "c"], ["y"]),
    ]
    return nodes, [weights("k0", 20, 3, 3, 3), weights("k1", 20, 20, 3, 3)]


def squeeze_and_excite() -> Nodes:
    """A depthwise convolution scaled by what its global mean says, then pooled and resampled."""
    nodes = [
        convolution("x", "a", "k0", 1),
        convolution("a", "b", "k1", 5, groups=24, stride=2),
        helper.make_node("GlobalAveragePool", ["b"], ["m"]),
        convolution("m", "s", "k2", 1),
        helper.make_node("HardSigmoid", ["s"], ["g"]),
        helper.make_node("Mul", ["b", "g"], ["c"]),
        helper.make_node("MaxPool", ["c"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    ]
    return nodes, [weights("k0", 24, 3, 1, 1), weights("k1", 24, 1, 5, 5), weights("k2", 24, 24, 1, 1)]


def concatenation() -> Nodes:
    """Branches joined along channels, split again at whole blocks and at half ones."""
    nodes = [
        convolution("x", "a", "k0", 3),
        convolution("x", "b", "k1", 1),
        helper.make_node("Concat", ["a", "b"], ["c"], axis=1),
        helper.make_node("Split", ["c"], ["d", "e", "f"], axis=1, num_outputs=3),
        helper.make_node("Mul", ["d", "f"], ["g"]),
        helper.make_node("Add", ["g", "e"], ["h"]),
        helper.make_node("Transpose", ["h"], ["y"], perm=[0, 2, 3, 1]),
    ]
    return nodes, [weights("k0", 16, 3, 3, 3), weights("k1", 32, 3, 1, 1)]


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("network", [residual, squeeze_and_excite, concatenation])
def test_results_stay(network: Callable[[], Nodes], lanes: int) -> None:
    nodes, initializers = network()
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    ctx = RtContext()
    module = import_model(model, ctx)
    feeds = {"x": np.random.default_rng(0).standard_normal((2, 3, 12, 10)).astype(np.float32)}
    expected = interpret(module, ctx, feeds)["y"]
    passes = f"convert-trt-to-fused,fuse-pointwise,assign-layouts{{lanes={lanes}}}"
    run_passes(module, ctx, passes, PipelineOptions(verify_each=True))
    assert "channels" in str(module)
    np.testing.assert_allclose(interpret(module, ctx, feeds)["y"], expected, rtol=1e-5, atol=1e-5)
