"""Rows of A31 that the ONNX parser answers."""

from __future__ import annotations

import numpy as np
from layer_networks import CollectingLogger, new_network
from network_engines import built, cpu_config, parsed, run
from onnx import helper
from onnx_models import model_of, numbers

import mlirt as trt


def test_an_operand_that_must_be_an_initializer() -> None:
    """tensorrt-features.md#31.14: as many axes of a sum as an input gives; as a constant they are taken, and the engine
    sums.
    """
    feeds = {"x": numbers(2, 3)}
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"])]
    given = model_of(nodes, {"x": ("float32", (2, 3)), "axes": ("int64", ("count",))}, ["y"])
    logger = CollectingLogger()
    parser = trt.OnnxParser(new_network(logger), logger)
    assert not parser.parse(given.SerializeToString())
    assert "must be an initializer!" in parser.get_error(0).desc()
    constant = model_of(nodes, {"x": ("float32", (2, 3))}, ["y"], {"axes": np.array([1], np.int64)})
    found = run(built(parsed(constant, logger), cpu_config(logger), logger).create_execution_context(), feeds)
    assert found is not None
    np.testing.assert_allclose(found["y"], feeds["x"].sum(1, keepdims=True), rtol=1e-5)
