"""Whole networks on a GPU: right, deterministic, saved and loaded, with dynamic shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlirt

pytestmark = pytest.mark.gpu

Array = np.ndarray[Any, np.dtype[Any]]


def network(batch: int | str = 1) -> onnx.ModelProto:
    """Convolutions with batch normalization and a residual, pooling, a classifier."""
    rng = np.random.default_rng(0)

    def weight(name: str, *shape: int) -> onnx.TensorProto:
        scale = np.sqrt(2 / max(1, int(np.prod(shape[1:]))))
        return numpy_helper.from_array((rng.standard_normal(shape) * scale).astype(np.float32), name)

    norm = [
        numpy_helper.from_array(np.abs(rng.standard_normal(32)).astype(np.float32) + 0.5, f"n{k}") for k in range(4)
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], pads=[3, 3, 3, 3], strides=[2, 2], name="stem"),
        helper.make_node("BatchNormalization", ["a", "n0", "n1", "n2", "n3"], ["b"], name="norm"),
        helper.make_node("Relu", ["b"], ["c"], name="relu"),
        helper.make_node("MaxPool", ["c"], ["d"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], name="pool"),
        helper.make_node("Conv", ["d", "w2"], ["e"], pads=[1, 1, 1, 1], name="body"),
        helper.make_node("Add", ["e", "d"], ["f"], name="residual"),
        helper.make_node("Relu", ["f"], ["g"], name="relu2"),
        helper.make_node("Conv", ["g", "w3"], ["h"], group=32, pads=[1, 1, 1, 1], name="depthwise"),
        helper.make_node("GlobalAveragePool", ["h"], ["i"], name="average"),
        helper.make_node("Flatten", ["i"], ["j"], name="flatten"),
        helper.make_node("Gemm", ["j", "w4", "b4"], ["k"], transB=1, name="classifier"),
        helper.make_node("Softmax", ["k"], ["y"], axis=1, name="probabilities"),
    ]
    weights = [weight("w1", 32, 3, 7, 7), weight("w2", 32, 32, 3, 3), weight("w3", 32, 1, 3, 3), weight("w4", 10, 32)]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 64, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 10])],
        [*weights, *norm, numpy_helper.from_array(np.zeros(10, np.float32), "b4")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def image(batch: int) -> Array:
    return np.random.default_rng(1).standard_normal((batch, 3, 64, 64)).astype(np.float32)


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("fp16", 2e-2)])
def test_a_network_is_right_and_deterministic(precision: str, tolerance: float) -> None:
    want = mlirt.compile(network(), target="reference").run({"x": image(1)})["y"]
    engine = mlirt.compile(network(), target="cuda", precision=precision)
    found = engine.run({"x": image(1)})["y"]
    np.testing.assert_allclose(found.astype(np.float32), want, atol=tolerance)
    assert all(engine.run({"x": image(1)})["y"].tobytes() == found.tobytes() for _ in range(20))


def test_a_saved_plan_gives_the_same_bits(tmp_path: Path) -> None:
    engine = mlirt.compile(network(), target="cuda")
    engine.save(tmp_path / "small.plan")
    loaded = mlirt.load(tmp_path / "small.plan")
    assert loaded.run({"x": image(1)})["y"].tobytes() == engine.run({"x": image(1)})["y"].tobytes()


def test_dynamic_batches() -> None:
    engine = mlirt.compile(network("n"), target="cuda")
    reference = mlirt.compile(network("n"), target="reference")
    for batch in (1, 5, 2, 1):
        want = reference.run({"x": image(batch)})["y"]
        np.testing.assert_allclose(engine.run({"x": image(batch)})["y"], want, atol=1e-4)
