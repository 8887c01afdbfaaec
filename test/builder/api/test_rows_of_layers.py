"""The edges of layers in engines: refused with a line in the log, or computed (tensorrt-features.md#1.14, 1.30b, 1.46,
1.48, 2.3).
"""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import CollectingLogger, constant, new_network
from network_engines import built, cpu_config

import mlirt as trt


def refused(network: trt.INetworkDefinition, logger: CollectingLogger) -> str:
    """The log of a build that gives nothing."""
    assert trt.Builder(logger).build_serialized_network(network, cpu_config(logger, trt.BuilderFlag.INT8)) is None
    return logger.text()


@pytest.mark.parametrize("how", ["identity", "layer", "output"])
def test_numbers_become_bytes_by_a_range_1_14(how: str) -> None:
    """200 became -56."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (4,))
    layer = network.add_identity(x) if how == "identity" else network.add_unary(x, trt.UnaryOperation.NEG)
    output = layer.get_output(0)
    output.name = "y"
    if how == "output":
        output.dtype = trt.int8
    else:
        layer.set_output_type(0, trt.int8)
    network.mark_output(output)
    assert "by its dynamic range; set one" in refused(network, logger).replace("the tensor's", "its")
    x.dynamic_range = output.dynamic_range = (-127, 127)
    engine = built(network, cpu_config(logger, trt.BuilderFlag.INT8), logger)
    (found,) = engine.engine.run({"x": np.array([200, 3, -4, -200], np.float32)}).values()
    sign = 1 if how == "identity" else -1
    np.testing.assert_array_equal(found, np.clip(sign * np.array([200, 3, -4, -200]), -128, 127))


@pytest.mark.parametrize("rows", [0, -1])
def test_the_mean_of_no_bytes_1_30b(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the interpreter has it: -128, and 0 of int32; of some bytes the quotient towards zero."""
    monkeypatch.setenv("MLIRT_BEYOND_TENSORRT", "1")  # int8 at the border without a scale
    for dtype, nothing in ((trt.int8, -128), (trt.int32, 0)):
        logger = CollectingLogger()
        network = new_network(logger)
        x = network.add_input("x", dtype, (2, rows))
        mean = network.add_reduce(x, trt.ReduceOperation.AVG, 2, False)
        network.mark_output(mean.get_output(0))
        shapes = {"x": ((2, 0), (2, 1), (2, 4))} if rows < 0 else None
        engine = built(network, cpu_config(logger, shapes=shapes), logger).engine
        (found,) = engine.run({"x": np.zeros((2, 0), trt.nptype(dtype))}).values()
        np.testing.assert_array_equal(found, [nothing, nothing])
        if rows < 0:
            (found,) = engine.run({"x": np.array([[1, 2, 4], [-1, -2, -4]], trt.nptype(dtype))}).values()
            np.testing.assert_array_equal(found, [2, -2])


@pytest.mark.parametrize("axis", [-1, -2, 0, 1])
def test_one_hot_counts_axes_from_the_end_1_46(axis: int) -> None:
    logger = CollectingLogger()
    network = new_network(logger)
    places = network.add_input("i", trt.int32, (3,))
    values, depth = constant(network, np.array([-1, 5], np.float32)), constant(network, np.array(4, np.int32))
    network.mark_output(network.add_one_hot(places, values, depth, axis).get_output(0))
    engine = built(network, cpu_config(logger), logger).engine
    (found,) = engine.run({"i": np.array([0, 3, -1], np.int32)}).values()
    rows = np.where(np.eye(4, dtype=bool)[[0, 3, 3]], 5, -1)
    np.testing.assert_array_equal(found, rows if axis in (-1, 1) else rows.T)


def test_one_hot_of_an_axis_that_is_none_1_46() -> None:
    logger = CollectingLogger()
    network = new_network(logger)
    values, depth = constant(network, np.array([0, 1], np.float32)), constant(network, np.array(4, np.int32))
    layer = network.add_one_hot(network.add_input("i", trt.int32, (3,)), values, depth, -3)
    network.mark_output(layer.get_output(0))
    assert "is not in the range 0 to 1" in refused(network, logger)


def test_nine_dimensions_1_48() -> None:
    """An invalid shape and None, each with a line in the log; no exception."""
    logger = CollectingLogger()
    network = new_network(logger)
    x, indices = network.add_input("x", trt.float32, (1,) * 8), constant(network, np.zeros((1, 1), np.int32))
    output = network.add_gather(x, indices, 0).get_output(0)
    network.mark_output(output)
    assert list(output.shape) == []
    assert "a tensor of 9 dimensions; the most are 8" in logger.text()
    assert "a tensor of 9 dimensions; the most are 8" in refused(network, logger)


def test_outputs_have_names_2_3() -> None:
    logger = CollectingLogger()
    network = new_network(logger)
    layer = network.add_identity(network.add_input("x", trt.float32, (2,)))
    network.mark_output(layer.get_output(0))
    layer.get_output(0).name = ""
    assert "an input or output of the network has no name" in refused(network, logger)
