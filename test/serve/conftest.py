"""A small network that all tests of serving share: y[n, 4] = tanh(x[n, 8] w + b)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlirt
from mlirt.runtime.engine import Engine

Array = np.ndarray[Any, np.dtype[Any]]


def dense_network(scale: float = 1.0) -> onnx.ModelProto:
    """The network, with weights times `scale`."""
    w = (np.random.default_rng(7).uniform(-1, 1, (8, 4)) * scale).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Tanh", ["a"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(w, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.fixture(scope="session")
def dense() -> Engine:
    """The engine of the network."""
    engine = mlirt.compile(dense_network(), "cpu", threads=1)
    assert isinstance(engine, Engine)
    return engine


@pytest.fixture(scope="session")
def dense_plan(dense: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its plan file."""
    path = tmp_path_factory.mktemp("plans") / "dense.plan"
    dense.save(path)
    return path
