"""Engines and contexts by TensorRT's names, on the CPU (sections 12, 13 and 17)."""

from __future__ import annotations

import ctypes
import json

import numpy as np
import pytest
from layer_networks import CollectingLogger, new_network

import mlirt as trt
from mlirt.errors import InvalidInputError

LOGGER = CollectingLogger()
OUTPUT = trt.TensorIOMode.OUTPUT


def dynamic_engine(verbosity: trt.ProfilingVerbosity, profiles: int = 1) -> trt.ICudaEngine:
    """Twice the input, and its shape; the first dimension is 1 to 4."""
    network = new_network(LOGGER)
    network.name = "doubling"
    x = network.add_input("x", trt.float32, (-1, 3))
    double = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM)
    shape = network.add_shape(x)
    double.name = "double"
    for layer, name in ((double, "y"), (shape, "shape")):
        layer.get_output(0).name = name
        network.mark_output(layer.get_output(0))
    builder = trt.Builder(LOGGER)
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    config.target = "cpu"
    config.profiling_verbosity = verbosity
    profile.set_shape("x", (1, 3), (2, 3), (4, 3))
    for _ in range(profiles):
        config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    engine = trt.Runtime(LOGGER).deserialize_cuda_engine(plan or b"")
    assert engine is not None
    return engine


@pytest.fixture(scope="module")
def engine() -> trt.ICudaEngine:
    return dynamic_engine(trt.ProfilingVerbosity.DETAILED)


def test_tensors_of_the_engine(engine: trt.ICudaEngine) -> None:
    """tensorrt-features.md#12.10, 12.18, 13.6, 13.20."""
    names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
    assert names == ["x", "y", "shape"]
    assert [engine.get_tensor_mode(name) for name in names] == [trt.TensorIOMode.INPUT, OUTPUT, OUTPUT]
    assert engine.get_tensor_mode("z") is trt.TensorIOMode.NONE
    assert [engine.get_tensor_shape(name) for name in names] == [(-1, 3), (-1, 3), (2,)]
    assert [engine.get_tensor_dtype(name) for name in names] == [trt.float32, trt.float32, trt.int32]
    assert engine.get_tensor_profile_shape("x", 0) == [(1, 3), (2, 3), (4, 3)]
    assert (engine.name, engine.num_optimization_profiles) == ("doubling", 1)
    assert engine.get_tensor_format_desc("x") == "Row major linear FP32 format (kLINEAR)"
    assert engine.get_tensor_bytes_per_component("x") == 4
    assert engine.device_memory_size >= 0
    with pytest.raises(InvalidInputError, match="no tensor 'z'"):
        engine.get_tensor_shape("z")


def test_bindings_of_old(engine: trt.ICudaEngine) -> None:
    """tensorrt-features.md#3.18, 12.17."""
    with pytest.warns(DeprecationWarning, match="Use get_tensor_shape instead"):
        assert engine.get_binding_shape(0) == (-1, 3)
    with pytest.warns(DeprecationWarning, match="Use num_io_tensors instead"):
        assert engine.num_bindings == 3
    with pytest.warns(DeprecationWarning, match="Use get_tensor_name instead"):
        assert (engine[0], engine["y"], engine.get_binding_name(1)) == ("x", 1, "y")
    with pytest.warns(DeprecationWarning, match="Use get_tensor_mode instead"):
        assert engine.binding_is_input(0)
    with pytest.warns(DeprecationWarning, match="Use get_tensor_profile_shape instead"):
        assert engine.get_profile_shape(0, "x") == [(1, 3), (2, 3), (4, 3)]
    with pytest.warns(DeprecationWarning, match="Use get_tensor_format instead"):
        assert engine.get_binding_format("y") is trt.TensorFormat.LINEAR
    with pytest.warns(DeprecationWarning, match="Use get_tensor_bytes_per_component instead"):
        assert engine.get_binding_bytes_per_component(2) == 4


def test_shapes_are_checked(engine: trt.ICudaEngine) -> None:
    """tensorrt-features.md#12.9, 12.11, 12.13, 12.14."""
    context = engine.create_execution_context()
    assert context.infer_shapes() == ["x"]
    assert not context.all_binding_shapes_specified
    assert context.get_tensor_shape("y") == (-1, 3)
    assert not context.execute_async_v3(0)
    assert "allInputShapesSpecified(routine)" in LOGGER.text()
    for shape in ((9, 3), (1, 4), (1, 3, 1)):
        assert not context.set_input_shape("x", shape)
    reasons = ("exceed min ~ max range at index 0, maximum shape in profile is 4", "mismatch", "nbDims == dims.nbDims")
    assert all(reason in LOGGER.text() for reason in reasons)
    assert context.set_input_shape("x", (4, 3))
    assert context.infer_shapes() == []
    assert context.get_tensor_shape("y") == (4, 3)
    assert context.get_tensor_strides("y") == (3, 1)
    assert context.get_max_output_size("y") == 48


def test_run_by_names(engine: trt.ICudaEngine) -> None:
    """tensorrt-features.md#13.2, 13.5: arrays and addresses."""
    context = engine.create_execution_context()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y, shape = np.empty_like(x), np.empty(2, np.int32)
    assert context.set_input_shape("x", x.shape)
    assert context.set_tensor_address("x", x)
    assert context.set_tensor_address("y", y.ctypes.data)
    assert not context.execute_async_v3(0)
    assert "the address of 'shape' is not set" in LOGGER.text()
    assert context.set_tensor_address("shape", shape)
    assert context.get_tensor_address("y") == y.ctypes.data
    assert context.execute_async_v3(0)
    np.testing.assert_array_equal(y, 2 * x)
    np.testing.assert_array_equal(shape, [2, 3])
    assert not context.set_tensor_address("x", np.ones((3, 2), np.float32).T)


def test_arrays_that_do_not_fit_are_refused(engine: trt.ICudaEngine) -> None:
    context = engine.create_execution_context()
    y, shape = np.empty((4, 3), np.float32), np.empty(2, np.int32)
    assert context.set_input_shape("x", (4, 3))
    assert not context.set_tensor_address("x", np.ones((4, 3)))
    assert "x: expected an array of float32, got float64" in LOGGER.text()
    for name, array in (("x", np.ones((3, 3), np.float32)), ("y", y), ("shape", shape)):
        assert context.set_tensor_address(name, array)
    assert not context.execute_async_v3(0)
    assert "x: the array has 9 elements, too few for the shape (4, 3)" in LOGGER.text()
    assert context.set_input_shape("x", (3, 3))
    assert context.execute_async_v3(0)
    assert not context.set_input_shape("x", (-1, 3))
    with pytest.raises(TypeError):
        context.set_input_shape("x", (1.5, 3))  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError):
        context.set_tensor_address("x", "memory")  # pyright: ignore[reportArgumentType]


def test_run_by_bindings(engine: trt.ICudaEngine) -> None:
    """tensorrt-features.md#13.3, 13.4."""
    context = engine.create_execution_context()
    x = np.ones((1, 3), np.float32)
    y, shape = np.empty_like(x), np.empty(2, np.int32)
    assert context.set_input_shape("x", x.shape)
    assert context.execute_v2([array.ctypes.data for array in (x, y, shape)])
    np.testing.assert_array_equal(y, 2 * x)
    assert not context.execute_v2([1])
    assert not context.execute(1, [])


class Allocator(trt.IOutputAllocator):
    """Memory of ctypes."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer = (ctypes.c_char * 0)()
        self.shape: trt.Dims | None = None
        self.gives = True

    def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
        self.buffer = (ctypes.c_char * size)()
        return ctypes.addressof(self.buffer) if self.gives else 0

    def notify_shape(self, tensor_name: str, shape: trt.Dims) -> None:
        self.shape = shape


def test_output_allocator(engine: trt.ICudaEngine) -> None:
    """tensorrt-features.md#12.15."""
    context, allocator = engine.create_execution_context(), Allocator()
    x, shape = np.ones((2, 3), np.float32), np.empty(2, np.int32)
    assert context.set_input_shape("x", x.shape)
    assert context.set_tensor_address("x", x)
    assert context.set_tensor_address("shape", shape)
    assert context.set_output_allocator("y", allocator)
    assert not context.set_output_allocator("x", allocator)
    assert context.execute_async_v3(0)
    assert allocator.shape == (2, 3)
    np.testing.assert_array_equal(np.frombuffer(bytes(allocator.buffer), np.float32), np.full(6, 2))
    allocator.gives = False
    assert not context.execute_async_v3(0)


class Times(trt.IProfiler):
    """Keeps names."""

    def __init__(self) -> None:
        super().__init__()
        self.layers: list[str] = []

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        self.layers.append(layer_name)


def test_profiler(engine: trt.ICudaEngine) -> None:
    """tensorrt-features.md#17.6, 17.7."""
    context, times = engine.create_execution_context(), Times()
    x = np.ones((1, 3), np.float32)
    y, shape = np.empty_like(x), np.empty(2, np.int32)
    bindings = [array.ctypes.data for array in (x, y, shape)]
    assert context.set_input_shape("x", x.shape)
    context.profiler = times
    context.enqueue_emits_profile = False
    assert context.execute_v2(bindings)
    assert times.layers == []
    assert context.report_to_profiler()
    assert "double" in times.layers
    context.enqueue_emits_profile = True
    times.layers.clear()
    assert context.execute_v2(bindings)
    assert "double" in times.layers


def test_contexts_are_independent() -> None:
    """tensorrt-features.md#13.8."""
    engine = dynamic_engine(trt.ProfilingVerbosity.DETAILED, profiles=2)
    first, second = (engine.create_execution_context() for _ in range(2))
    assert second.set_optimization_profile_async(1, 0)
    assert first.set_input_shape("x", (1, 3))
    assert second.set_input_shape("x", (4, 3))
    assert (first.get_tensor_shape("y"), second.get_tensor_shape("y")) == ((1, 3), (4, 3))


def test_plan_is_serialized_again(engine: trt.ICudaEngine) -> None:
    again = trt.Runtime(LOGGER).deserialize_cuda_engine(engine.serialize())
    assert again is not None
    assert again.name == engine.name


def test_damaged_plan_is_none() -> None:
    """tensorrt-features.md#13.1."""
    runtime = trt.Runtime(LOGGER)
    assert runtime.deserialize_cuda_engine(b"no plan") is None
    assert "deserializeCudaEngine" in LOGGER.text()
    nothing: object = None
    with pytest.raises(TypeError, match="incompatible function arguments"):
        runtime.deserialize_cuda_engine(nothing)  # pyright: ignore[reportArgumentType]


def test_inspector_says_all(engine: trt.ICudaEngine) -> None:
    """tensorrt-features.md#17.1, 17.3."""
    inspector = engine.create_engine_inspector()
    told = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
    assert told["Bindings"] == ["x", "y", "shape"]
    assert "double" in [layer["Name"] for layer in told["Layers"]]
    assert all("LayerType" in layer for layer in told["Layers"])
    one = json.loads(inspector.get_layer_information(0, trt.LayerInformationFormat.JSON))
    assert one == told["Layers"][0]
    assert len(inspector.get_engine_information(trt.LayerInformationFormat.ONELINE).splitlines()) == engine.num_layers
    with pytest.raises(InvalidInputError, match="no layer 99"):
        inspector.get_layer_information(99, trt.LayerInformationFormat.ONELINE)


def test_inspector_says_which_shapes_are_kept(engine: trt.ICudaEngine) -> None:
    inspector, context = engine.create_engine_inspector(), engine.create_execution_context()
    x = np.ones((2, 3), np.float32)
    y, shape = np.empty_like(x), np.empty(2, np.int32)
    assert "ShapeCache" not in json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
    inspector.execution_context = context
    assert context.set_input_shape("x", x.shape)
    assert context.execute_v2([array.ctypes.data for array in (x, y, shape)])
    kept = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))["ShapeCache"]
    assert (kept["programs"], kept["limit"]) == (1, 64 << 20)
    assert 0 < kept["bytes"] < 1 << 20


@pytest.mark.parametrize("verbosity", [trt.ProfilingVerbosity.LAYER_NAMES_ONLY, trt.ProfilingVerbosity.NONE])
def test_inspector_says_less(verbosity: trt.ProfilingVerbosity) -> None:
    """tensorrt-features.md#17.2."""
    inspector = dynamic_engine(verbosity).create_engine_inspector()
    told = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
    names = verbosity is trt.ProfilingVerbosity.LAYER_NAMES_ONLY
    assert ("double" in told["Layers"], bool(told["Bindings"])) == (names, names)
