"""Shapes of outputs are known once the values of shapes are, and values are held to the profile
(tensorrt-features.md#12.11, 12.12).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from layer_networks import Array, CollectingLogger, constant, new_network
from network_engines import built, cpu_config, parsed
from onnx import helper
from onnx_models import model_of

import mlirt as trt

Make = Callable[[trt.INetworkDefinition, trt.ITensor, trt.ITensor], trt.ILayer]


def shuffled(network: trt.INetworkDefinition, x: trt.ITensor, s: trt.ITensor) -> trt.ILayer:
    layer = network.add_shuffle(x)
    layer.set_input(1, s)
    return layer


def sliced(network: trt.INetworkDefinition, x: trt.ITensor, s: trt.ITensor) -> trt.ILayer:
    layer = network.add_slice(x, [0, 0], [1, 1], [1, 1])
    layer.set_input(2, s)
    return layer


def filled(network: trt.INetworkDefinition, x: trt.ITensor, s: trt.ITensor) -> trt.ILayer:
    layer = network.add_fill([1, 1], trt.FillOperation.LINSPACE)
    layer.set_input(0, s)
    layer.set_input(1, constant(network, np.array(0, np.float32)))
    layer.set_input(2, constant(network, np.array([1, 10], np.float32)))
    return layer


def doubled_shape(network: trt.INetworkDefinition, x: trt.ITensor, s: trt.ITensor) -> trt.ILayer:
    """Twice the asked length, and what the lengths of x divided by it are."""
    two = constant(network, np.array([2, 1], np.int32))
    asked = network.add_elementwise(s, two, trt.ElementWiseOperation.PROD).get_output(0)
    least = constant(network, np.array([1, 1], np.int32))
    return filled(network, x, network.add_elementwise(asked, least, trt.ElementWiseOperation.MAX).get_output(0))


CASES: list[tuple[Make, list[int], tuple[int, int]]] = [
    (shuffled, [4, 3], (4, 3)),
    (shuffled, [-1, 6], (2, 6)),
    (shuffled, [0, -1], (6, 2)),
    (sliced, [2, 1], (2, 1)),
    (filled, [3, 5], (3, 5)),
    (doubled_shape, [2, 3], (4, 3)),
    (doubled_shape, [0, 0], (1, 1)),
]


def engine_of(make: Make, logger: CollectingLogger, high: int = 12) -> trt.ICudaEngine:
    """x of any number of rows, and a shape of two numbers."""
    network = new_network(logger)
    x, s = network.add_input("x", trt.float32, (-1, 2)), network.add_input("s", trt.int32, (2,))
    layer = make(network, x, s)
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    config, profile = cpu_config(logger), trt.Builder(logger).create_optimization_profile()
    profile.set_shape("x", (1, 2), (6, 2), (9, 2))
    profile.set_shape_input("s", (-1, -1), (3, 4), (high, high))
    config.add_optimization_profile(profile)
    return built(network, config, logger)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("make", "values", "shape"), CASES)
@pytest.mark.parametrize("by_address", [False, True])
def test_shapes_follow_from_values_12_11(
    make: Make, values: list[int], shape: tuple[int, int], by_address: bool
) -> None:
    logger = CollectingLogger()
    engine = engine_of(make, logger)
    context = engine.create_execution_context()
    assert context.get_tensor_shape("y") == (-1, -1)
    assert context.set_input_shape("x", (6, 2))
    assert context.get_tensor_shape("y") == (-1, -1)
    given = np.array(values, np.int32)
    assert context.set_tensor_address("s", given) if by_address else context.set_shape_input(1, values)
    assert context.infer_shapes() == []
    assert context.get_tensor_shape("y") == context.get_binding_shape(2) == shape
    assert context.get_max_output_size("y") == shape[0] * shape[1] * 4
    y = np.full(shape, np.nan, np.float32)
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    assert context.set_tensor_address("x", x)
    assert context.set_tensor_address("y", y)
    assert context.execute_async_v3(0), logger.text()
    assert not np.isnan(y).any()
    if make is shuffled:
        np.testing.assert_array_equal(y, x.reshape(shape))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_values_are_within_the_profile_12_12() -> None:
    """Whether by value or by address, and whichever call runs."""
    logger = CollectingLogger()
    engine = engine_of(shuffled, logger, high=6)
    context = engine.create_execution_context()
    x, y, values = np.zeros((6, 2), np.float32), np.zeros(12, np.float32), np.array([12, 1], np.int32)
    assert context.set_input_shape("x", (6, 2))
    assert not context.set_shape_input(1, [12, 1])
    for name, array in (("x", x), ("s", values)):
        assert context.set_tensor_address(name, array)
    assert context.infer_shapes() == ["s"]
    assert context.set_tensor_address("y", y.ctypes.data)
    logger.messages.clear()
    assert not context.execute_async_v3(0)
    assert (
        "s: Supplied values [12, 1] exceed min ~ max range at index 0, maximum value in profile is 6" in logger.text()
    )
    assert not context.execute_v2([x.ctypes.data, values.ctypes.data, y.ctypes.data])
    values[:] = [6, 2]
    assert context.execute_v2([x.ctypes.data, values.ctypes.data, y.ctypes.data])


def test_arrays_are_as_large_as_the_values_say_12_11() -> None:
    logger = CollectingLogger()
    context = engine_of(filled, logger).create_execution_context()
    values, small = np.array([3, 5], np.int32), np.zeros(14, np.float32)
    assert context.set_input_shape("x", (1, 2))
    feeds: dict[str, Array] = {"x": np.zeros((1, 2), np.float32), "s": values, "y": small}
    for name, array in feeds.items():
        assert context.set_tensor_address(name, array)
    assert not context.execute_async_v3(0)
    assert "y: the array has 14 elements, too few for the shape (3, 5)" in logger.text()


def test_models_of_onnx_12_11() -> None:
    nodes = [helper.make_node("Reshape", ["x", "s"], ["r"]), helper.make_node("Relu", ["r"], ["y"])]
    model = model_of(nodes, {"x": ("float32", ["n", 6]), "s": ("int64", [3])}, ["y"])
    logger = CollectingLogger()
    network = parsed(onnx.load_from_string(model.SerializeToString()), logger)
    profile = trt.Builder(logger).create_optimization_profile()
    profile.set_shape("x", (1, 6), (2, 6), (4, 6))
    profile.set_shape_input("s", (1, -1, 1), (2, -1, 3), (4, -1, 6))
    config = cpu_config(logger)
    config.add_optimization_profile(profile)
    context = built(network, config, logger).create_execution_context()
    assert context.set_input_shape("x", (4, 6))
    values = np.array([2, -1, 3], np.int32)
    assert context.set_tensor_address("s", values)
    assert context.get_tensor_shape("y") == (2, 4, 3)


def test_counts_of_data_stay_open_12_14() -> None:
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (2, 3))
    network.mark_output(network.add_non_zero(x).get_output(0))
    context = built(network, cpu_config(logger), logger).create_execution_context()
    (name,) = (one for one in context.engine.tensor_names if one != "x")
    assert context.get_tensor_shape(name) == (2, -1)
