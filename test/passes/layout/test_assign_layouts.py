"""Layouts change where elements lie and never what they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
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
        convolution("x", "w", "k3", 1),
        convolution("w", "a", "k0", 1),
        convolution("a", "b", "k1", 5, groups=24, stride=2),
        helper.make_node("GlobalAveragePool", ["b"], ["m"]),
        convolution("m", "s", "k2", 1),
        helper.make_node("HardSigmoid", ["s"], ["g"]),
        helper.make_node("Mul", ["b", "g"], ["c"]),
        convolution("c", "d", "k4", 3),
        helper.make_node("MaxPool", ["d"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    ]
    sizes = {"k0": (24, 32, 1, 1), "k1": (24, 1, 5, 5), "k2": (24, 24, 1, 1), "k3": (32, 3, 1, 1), "k4": (64, 24, 3, 3)}
    return nodes, [weights(name, *shape) for name, shape in sizes.items()]


def concatenation() -> Nodes:
    """Branches joined along channels, split again at whole blocks and at half ones."""
    nodes = [
        convolution("x", "w", "k2", 1),
        convolution("w", "a", "k0", 3),
        convolution("w", "b", "k1", 1),
        helper.make_node("Concat", ["a", "b"], ["c"], axis=1),
        helper.make_node("Split", ["c"], ["d", "e", "f"], axis=1, num_outputs=3),
        helper.make_node("Mul", ["d", "f"], ["g"]),
        helper.make_node("Add", ["g", "e"], ["h"]),
        helper.make_node("Transpose", ["h"], ["y"], perm=[0, 2, 3, 1]),
    ]
    return nodes, [weights("k0", 16, 32, 3, 3), weights("k1", 32, 32, 1, 1), weights("k2", 32, 3, 1, 1)]


def partial_stages() -> Nodes:
    """Half of the channels go on, in two stages; all that came up on the way is joined, and read in part by others."""
    nodes = [
        convolution("x", "a", "k0", 3),
        helper.make_node("Split", ["a"], ["b", "c"], axis=1, num_outputs=2),
        convolution("c", "d", "k1", 3),
        helper.make_node("Relu", ["d"], ["e"]),
        convolution("e", "f", "k2", 3),
        helper.make_node("Concat", ["b", "c", "e", "f"], ["g"], axis=1),
        convolution("g", "h", "k3", 1),
        helper.make_node("Add", ["h", "e"], ["i"]),
        helper.make_node("Concat", ["e", "i"], ["j"], axis=1),
        helper.make_node("MaxPool", ["j"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    sizes = {"k0": (32, 3, 3, 3), "k1": (16, 16, 3, 3), "k2": (16, 16, 3, 3), "k3": (16, 64, 1, 1)}
    return nodes, [weights(name, *shape) for name, shape in sizes.items()]


def imported(nodes: list[onnx.NodeProto], initializers: list[onnx.TensorProto], ctx: RtContext) -> ModuleOp:
    """The network of these nodes from images `x` to `y`."""
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        initializers,
    )
    return import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), ctx)


IMAGES = {"x": np.random.default_rng(0).standard_normal((2, 3, 12, 10)).astype(np.float32)}


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("network", [residual, squeeze_and_excite, concatenation])
def test_results_stay(network: Callable[[], Nodes], lanes: int) -> None:
    ctx = RtContext()
    module = imported(*network(), ctx)
    expected = interpret(module, ctx, IMAGES)["y"]
    passes = f"convert-trt-to-fused,fuse-pointwise,assign-layouts{{lanes={lanes}}}"
    run_passes(module, ctx, passes, PipelineOptions(verify_each=True))
    assert "channels" in str(module)
    np.testing.assert_allclose(interpret(module, ctx, IMAGES)["y"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("tactic", ["", " tactic=generic"])
@pytest.mark.parametrize("network", [residual, squeeze_and_excite, concatenation, partial_stages])
def test_kernels_for_channels_last(network: Callable[[], Nodes], tactic: str) -> None:
    """Half precision: dynamic images count as large ones, so that channels last are worth it; here run small ones."""
    ctx = RtContext()
    module = imported(*network(), ctx)
    expected = interpret(module, ctx, IMAGES)["y"]
    fusion = "convert-precision{to=f16},convert-trt-to-fused,fuse-pointwise,eliminate-concatenation"
    run_passes(module, ctx, f"{fusion},assign-layouts{{target=cuda}}", PipelineOptions(verify_each=True))
    assert "order = [0, 2, 3, 1]" in str(module)
    bound = 1e-2 * np.abs(expected).max()
    np.testing.assert_allclose(interpret(module, ctx, IMAGES)["y"], expected, rtol=0, atol=bound)
    lowering = f"convert-fused-to-kernel{{target=cuda{tactic}}},map-parallel-to-threads"
    run_passes(module, ctx, lowering, PipelineOptions(verify_each=True))
    (found,) = run_plan(module, ctx, IMAGES).values()
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound)
