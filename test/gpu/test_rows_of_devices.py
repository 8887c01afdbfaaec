"""Rows about the choice among several GPUs, by CUDA's own runtime: each object belongs to the device that was current.
"""

from __future__ import annotations

from collections.abc import Generator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from device_arrays import DeviceArrays, bind
from device_networks import gpu_config, opened, plan_of, two_products, two_products_plan
from layer_networks import Array, CollectingLogger, new_network

import mlirt as trt
from mlirt.runtime.current_device import current_ordinal

pytestmark = pytest.mark.gpu
SHAPE = (8, 96)


def cudart() -> Any:
    return import_module("cuda.bindings.runtime")


def choose(device: int) -> None:
    (status,) = cudart().cudaSetDevice(device)
    assert int(status) == 0, status


def chosen() -> int:
    status, device = cudart().cudaGetDevice()
    assert int(status) == 0, status
    return device


def device_of(address: int) -> int:
    """Where memory lies."""
    status, attributes = cudart().cudaPointerGetAttributes(address)
    assert int(status) == 0, status
    return attributes.device


@pytest.fixture
def second() -> Generator[int]:
    """The number of another device than the first; device 0 is current before and afterwards."""
    status, count = cudart().cudaGetDeviceCount()
    assert int(status) == 0, status
    if count < 2:
        pytest.skip("needs two CUDA devices, and this machine has one")
    choose(0)
    yield 1
    choose(0)


def numbers(seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)


class Allocator(trt.IGpuAllocator):
    """Memory of the device that is current when it is asked, as CUDA's own runtime gives it."""

    def __init__(self) -> None:
        super().__init__()
        self.devices: list[int] = []

    def allocate(self, size: int, alignment: int, flags: int) -> int:
        status, address = cudart().cudaMalloc(size)
        assert int(status) == 0, status
        self.devices.append(device_of(address))
        return int(address)

    def deallocate(self, memory: int) -> bool:
        (status,) = cudart().cudaFree(memory)
        return int(status) == 0


def test_engines_belong_to_the_device_that_was_current(second: int) -> None:
    """tensorrt-features.md#13.22, 13.23: chosen before the plan is read. Runs of each work with either device current,
    on memory of the engine's device, and leave the choice as it was.
    """
    logger = CollectingLogger()
    plan = two_products_plan(logger)
    engines: list[trt.ICudaEngine] = []
    allocators = [Allocator(), Allocator()]
    for device, allocator in enumerate(allocators):
        choose(device)
        runtime = trt.Runtime(logger)
        runtime.gpu_allocator = allocator
        engine = runtime.deserialize_cuda_engine(plan)
        assert engine is not None, logger.text()
        assert chosen() == device == current_ordinal()
        engines.append(engine)
    runs: list[tuple[trt.IExecutionContext, DeviceArrays, int, int, int]] = []
    for device, engine in enumerate(engines):
        choose(device)
        arrays = DeviceArrays()
        context, x, y = engine.create_execution_context(), arrays.put(numbers(device)), arrays.empty(SHAPE)
        assert device_of(x) == device_of(y) == device
        bind(context, {"x": x, "y": y}, x=SHAPE)
        runs.append((context, arrays, x, y, arrays.stream()))
    for current in (0, second, 0):
        for device, (context, arrays, x, y, stream) in enumerate(runs):
            choose(device)
            arrays.set(x, numbers(10 * current + device))
            arrays.set(y, np.zeros(SHAPE, np.float32))
            choose(current)
            assert context.execute_async_v3(stream), logger.text()
            assert chosen() == current == current_ordinal()
            choose(device)
            arrays.driver.synchronize(stream)
            want = two_products(numbers(10 * current + device))
            np.testing.assert_allclose(arrays.get(y, SHAPE), want, rtol=1e-4, atol=1e-4)
    for device, allocator in enumerate(allocators):
        assert allocator.devices
        assert set(allocator.devices) == {device}
    choose(0)
    found = engines[second].engine.run({"x": numbers(5)})["y"]
    np.testing.assert_allclose(found, two_products(numbers(5)), rtol=1e-4, atol=1e-4)
    runs.clear()
    engines.clear()
    assert chosen() == 0


def test_a_builder_belongs_to_its_device(second: int) -> None:
    """tensorrt-features.md#13.22, 31.4: it does not build while another device is current, says so, and builds again
    when its own is.
    """
    logger = CollectingLogger()
    builder, network = trt.Builder(logger), new_network(logger)
    y = network.add_activation(network.add_input("x", trt.float32, SHAPE), trt.ActivationType.RELU).get_output(0)
    y.name = "y"
    network.mark_output(y)
    config = gpu_config(logger)
    choose(second)
    assert builder.build_serialized_network(network, config) is None
    assert "Builder was created on device different from current device" in logger.text()
    assert chosen() == second
    other = opened(plan_of(network, config, logger), logger)  # of a builder that is made here
    np.testing.assert_array_equal(other.engine.run({"x": numbers(1)})["y"], np.maximum(numbers(1), 0))
    choose(0)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None, logger.text()
    assert chosen() == 0


def test_one_device_is_device_0() -> None:
    """tensorrt-features.md#13.23: CUDA's runtime and mlirt agree about what is current."""
    choose(0)
    assert current_ordinal() == chosen() == 0
    logger = CollectingLogger()
    engine = opened(two_products_plan(logger), logger)
    found = engine.engine.run({"x": numbers(1)})["y"]
    np.testing.assert_allclose(found, two_products(numbers(1)), rtol=1e-4, atol=1e-4)
    assert current_ordinal() == chosen() == 0
