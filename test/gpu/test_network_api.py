"""TensorRT's names on a GPU: runs on memory of the device, in the order of a stream, in the precision asked for."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import Array, CollectingLogger, evaluate, new_network

import mlirt as trt
from mlirt.runtime.cuda_driver import CudaDriver, open_driver

pytestmark = pytest.mark.gpu
FP16, OBEY = trt.BuilderFlag.FP16, trt.BuilderFlag.OBEY_PRECISION_CONSTRAINTS
SHAPE = (3, 16, 16, 16)


class Memory:
    """Arrays on the device."""

    def __init__(self) -> None:
        self.driver: CudaDriver = open_driver()
        self.driver.activate()
        self.stream = self.driver.new_stream()

    def put(self, array: Array) -> int:
        address = self.driver.allocate(array.nbytes)
        self.driver.copy_to_device(address, array.ctypes.data, array.nbytes, self.stream)
        return address

    def get(self, address: int, shape: tuple[int, ...]) -> Array:
        array = np.empty(shape, np.float32)
        self.driver.copy_to_host(array.ctypes.data, address, array.nbytes, self.stream)
        self.driver.synchronize(self.stream)
        return array


def two_layers() -> trt.INetworkDefinition:
    random = np.random.default_rng(2)
    network = new_network()
    x = network.add_input("x", trt.float32, (-1, *SHAPE[1:]))
    for number in (1, 2):
        kernel = random.standard_normal((16, 16, 3, 3)).astype(np.float32) / 12
        conv = network.add_convolution_nd(x, 16, (3, 3), kernel)
        conv.name, conv.padding_nd = f"conv{number}", (1, 1)
        x = network.add_activation(conv.get_output(0), trt.ActivationType.RELU).get_output(0)
    x.name = "y"
    network.mark_output(x)
    return network


@pytest.mark.parametrize(
    ("flags", "wide", "tolerance"), [((), False, 1e-2), ((FP16, OBEY), True, 1e-4), ((FP16,), False, 3e-2)]
)
def test_run_on_device_memory(flags: tuple[trt.BuilderFlag, ...], wide: bool, tolerance: float) -> None:
    """tensorrt-features.md#4.5, 4.11, 13.2: in half precision unless every layer is asked for float32."""
    network, logger = two_layers(), CollectingLogger()
    builder = trt.Builder(logger)
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    config.target = "cuda"
    for flag in flags:
        config.set_flag(flag)
    for layer in network if wide else ():
        layer.precision = trt.float32
    profile.set_shape("x", (1, *SHAPE[1:]), SHAPE, (4, *SHAPE[1:]))
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None, logger.text()
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    assert engine is not None, logger.text()
    context, memory = engine.create_execution_context(), Memory()
    x = np.random.default_rng(3).standard_normal(SHAPE).astype(np.float32)
    y = memory.put(np.zeros(SHAPE, np.float32))
    assert context.set_input_shape("x", SHAPE)
    assert context.set_tensor_address("x", memory.put(x))
    assert context.set_tensor_address("y", y)
    for _ in range(3):
        assert context.execute_async_v3(memory.stream), logger.text()
    (expected,) = evaluate(two_layers(), {"x": x})
    np.testing.assert_allclose(memory.get(y, SHAPE), expected, atol=tolerance)
