"""Optimization profiles and inputs that are read as shapes, by TensorRT's names (section 12)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import pytest
from layer_networks import Array, CollectingLogger, new_network

import mlirt as trt

RELU = trt.ActivationType.RELU


def built(
    network: trt.INetworkDefinition, profiles: Sequence[trt.IOptimizationProfile], logger: CollectingLogger
) -> trt.ICudaEngine | None:
    builder = trt.Builder(logger)
    config = builder.create_builder_config()
    config.target = "cpu"
    for profile in profiles:
        config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    return None if plan is None else trt.Runtime(logger).deserialize_cuda_engine(plan)


def with_output(network: trt.INetworkDefinition, layer: trt.ILayer) -> trt.INetworkDefinition:
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    return network


@pytest.fixture(scope="module")
def two_profiles() -> tuple[trt.ICudaEngine, CollectingLogger]:
    """One to four rows, or eight to sixteen."""
    logger = CollectingLogger()
    network = new_network(logger)
    layer = network.add_activation(network.add_input("x", trt.float32, (-1, 3)), RELU)
    profiles = [trt.Builder(logger).create_optimization_profile() for _ in range(2)]
    for profile, lengths in zip(profiles, ((1, 2, 4), (8, 8, 16)), strict=True):
        profile.set_shape("x", *((length, 3) for length in lengths))
    engine = built(with_output(network, layer), profiles, logger)
    assert engine is not None
    return engine, logger


def test_each_profile_has_its_range(two_profiles: tuple[trt.ICudaEngine, CollectingLogger]) -> None:
    """tensorrt-features.md#12.4, 12.7, 12.18: a shape that the new profile does not allow is to be set again."""
    engine, logger = two_profiles
    assert [engine.get_tensor_profile_shape("x", k)[2] for k in range(2)] == [(4, 3), (16, 3)]
    context = engine.create_execution_context()
    assert context.active_optimization_profile == 0
    assert not context.set_input_shape("x", (8, 3))
    assert context.set_input_shape("x", (2, 3))
    assert context.set_optimization_profile_async(1, 0)
    assert (context.active_optimization_profile, context.infer_shapes()) == (1, ["x"])
    assert context.get_tensor_shape("y") == (-1, 3)
    assert not context.set_input_shape("x", (4, 3))
    assert "minimum shape in profile is 8" in logger.text()
    assert context.set_input_shape("x", (8, 3))
    assert context.set_optimization_profile_async(1, 0)
    assert context.infer_shapes() == []
    assert not context.set_optimization_profile_async(2, 0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_each_profile_has_its_bindings(two_profiles: tuple[trt.ICudaEngine, CollectingLogger]) -> None:
    """tensorrt-features.md#12.17: the bindings of the second profile come behind those of the first."""
    engine, _ = two_profiles
    assert engine.num_bindings == len(engine) == 4
    names = [engine.get_binding_name(index) for index in range(4)]
    assert names == [engine[index] for index in range(4)] == ["x", "y", "x [profile 1]", "y [profile 1]"]
    assert [engine.get_binding_index(name) for name in (*names, "z")] == [0, 1, 2, 3, -1]
    assert engine.binding_is_input(2)
    assert engine.get_profile_shape(1, 2) == [(8, 3), (8, 3), (16, 3)]
    context = engine.create_execution_context()
    assert context.set_optimization_profile_async(1, 0)
    assert context.set_binding_shape(2, (8, 3))
    assert context.get_binding_shape(3) == (8, 3)
    x, y = np.full((8, 3), 5, np.float32), np.zeros((8, 3), np.float32)
    assert context.execute_v2([0, 0, x.ctypes.data, y.ctypes.data])
    np.testing.assert_array_equal(y, x)
    with pytest.raises(IndexError):
        engine.get_binding_shape(4)


def reshaping(logger: CollectingLogger) -> trt.INetworkDefinition:
    """x in the shape that the input `shape` holds."""
    network = new_network(logger)
    layer = network.add_shuffle(network.add_input("x", trt.float32, (2, 6)))
    layer.set_input(1, network.add_input("shape", trt.int32, (2,)))
    return with_output(network, layer)


def test_values_of_shapes_belong_to_the_profile() -> None:
    """tensorrt-features.md#12.2, 12.5: without a profile, and with one that lacks the values."""
    logger = CollectingLogger()
    network = reshaping(logger)
    assert network.get_input(1).is_shape_tensor
    assert built(network, [], logger) is None
    assert "dynamic or shape inputs, but no optimization profile has been defined" in logger.text()
    profile = trt.Builder(logger).create_optimization_profile()
    profile.set_shape("x", (2, 6), (2, 6), (2, 6))
    assert built(network, [profile], logger) is None
    assert "shape: optimization profile is missing values for shape input (profile 0)" in logger.text()


class Allocator(trt.IOutputAllocator):
    """Memory of ctypes."""

    def __init__(self) -> None:
        super().__init__()
        self.shape: tuple[int, ...] = ()

    def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
        self.buffer = (ctypes.c_char * size)()
        return ctypes.addressof(self.buffer)

    def notify_shape(self, tensor_name: str, shape: trt.Dims) -> None:
        self.shape = tuple(shape)

    @property
    def array(self) -> Array:
        return np.frombuffer(bytes(self.buffer), np.float32).reshape(self.shape)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inputs_that_are_read_as_shapes() -> None:
    """tensorrt-features.md#12.11 to 12.13, 12.15, 12.22, 13.7: they are on the host, and are given by address or by
    value.
    """
    logger = CollectingLogger()
    profile = trt.Builder(logger).create_optimization_profile()
    profile.set_shape_input("shape", (1, -1), (3, 4), (12, 12))
    engine = built(reshaping(logger), [profile], logger)
    assert engine is not None, logger.text()
    assert [engine.is_shape_inference_io(name) for name in ("x", "shape", "y")] == [False, True, False]
    assert engine.get_tensor_location("shape") is trt.TensorLocation.HOST
    assert engine.get_profile_shape_input(0, "shape") == [[1, -1], [3, 4], [12, 12]]
    context, allocator = engine.create_execution_context(), Allocator()
    assert context.infer_shapes() == ["shape"]
    assert not context.all_shape_inputs_specified
    x, shape = np.arange(12, dtype=np.float32), np.array([4, -1], np.int32)
    assert context.set_tensor_address("x", x)
    assert context.set_tensor_address("shape", shape)
    assert context.set_output_allocator("y", allocator)
    assert context.infer_shapes() == []
    assert (context.get_tensor_shape("y"), context.get_max_output_size("y")) == ((4, 3), 48)
    shape[:] = [13, 1]
    assert context.infer_shapes() == ["shape"]
    assert not context.execute_async_v3(0)
    assert "shape: Supplied values [13, 1] exceed min ~ max range at index 0" in logger.text()
    shape[:] = [4, -1]
    assert context.execute_async_v3(0)
    np.testing.assert_array_equal(allocator.array, x.reshape(4, 3))
    assert not context.set_shape_input(1, [13, 1])
    assert "maximum value in profile is 12" in logger.text()
    assert context.set_shape_input(1, [6, 2])
    assert context.get_shape(1) == [6, 2]
    assert context.execute_v2([x.ctypes.data, 0, 0])
    np.testing.assert_array_equal(allocator.array, x.reshape(6, 2))
