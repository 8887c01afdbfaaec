"""Convolutions of frames, and along them, compiled, against the meaning of the network."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlirt
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_phases

RNG = np.random.default_rng(0)


def network(depth: int | str, batch: int) -> onnx.ModelProto:
    """A residual block of windows of one slice and windows of one pixel, and one with strides on all axes."""
    kernels = {
        "k0": (20, 3, 1, 3, 3),
        "k1": (32, 20, 3, 1, 1),
        "k2": (37, 32, 1, 3, 3),
        "k3": (32, 37, 3, 1, 1),
        "k4": (24, 32, 1, 3, 3),
        "k5": (16, 24, 3, 1, 1),
        "k6": (16, 32, 1, 1, 1),
    }
    weights = {name: RNG.standard_normal(shape).astype(np.float32) * 0.2 for name, shape in kernels.items()}
    frames: dict[str, Any] = {"pads": [0, 1, 1, 0, 1, 1]}
    along: dict[str, Any] = {"pads": [1, 0, 0, 1, 0, 0]}
    nodes = [
        helper.make_node("Conv", ["x", "k0"], ["a"], strides=[1, 2, 2], **frames),
        helper.make_node("Conv", ["a", "k1"], ["b"], **along),
        helper.make_node("Conv", ["b", "k2"], ["c"], **frames),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Conv", ["d", "k3"], ["e"], **along),
        helper.make_node("Add", ["e", "b"], ["f"]),
        helper.make_node("Relu", ["f"], ["g"]),
        helper.make_node("Conv", ["g", "k4"], ["h"], strides=[1, 2, 2], **frames),
        helper.make_node("Conv", ["h", "k5"], ["i"], strides=[2, 1, 1], **along),
        helper.make_node("Conv", ["g", "k6"], ["j"], strides=[2, 2, 2]),
        helper.make_node("Add", ["i", "j"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, depth, 13, 18])],
        [helper.make_tensor_value_info(one, TensorProto.FLOAT, None) for one in ("c", "y")],
        [numpy_helper.from_array(array, key) for key, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.parametrize(("depth", "batch"), [(5, 1), ("d", 1), (4, 5)])
def test_frames(depth: int | str, batch: int) -> None:
    model = network(depth, batch)
    x = RNG.standard_normal((batch, 3, depth if isinstance(depth, int) else 6, 13, 18)).astype(np.float32)
    x[0, 0, 1, 3] = np.inf
    ctx = RtContext()
    expected = interpret(import_model(model, ctx), ctx, {"x": x})
    engine = mlirt.compile(model, target="cpu")
    for _ in range(2):  # the border is written where another buffer has been there before
        for key, found in engine.run({"x": x}).items():
            np.testing.assert_allclose(found, expected[key], rtol=2e-4, atol=2e-4)


def test_convolutions_write_rows_that_are_slices() -> None:
    """Of the copies only those are left that make images of slices: four, and one to the caller for each output."""
    ctx = RtContext()
    model = import_model(network(8, 1), ctx)
    run_phases(model, ctx, None, "lowering", PipelineOptions("cpu"))
    launches = [op for op in model.walk() if isinstance(op, LaunchOp)]
    assert len(launches) <= 17
