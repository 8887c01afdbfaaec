"""Scripts that hold memory by CUDA's runtime run on a CPU, with the host's memory by the same calls."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import new_network

import mlirt as trt
from mlirt import host_cudart as cudart

UP, DOWN = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
GOOD, BAD = (cudart.cudaError_t.cudaSuccess,), (cudart.cudaError_t.cudaErrorInvalidValue,)


def test_a_run_as_samples_make_it() -> None:
    network = new_network()
    x = network.add_input("x", trt.float32, (2, 3))
    y = network.add_unary(x, trt.UnaryOperation.NEG).get_output(0)
    y.name = "y"
    network.mark_output(y)
    builder = trt.Builder(trt.Logger())
    config = builder.create_builder_config()
    config.target = "cpu"
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    engine = trt.Runtime(trt.Logger()).deserialize_cuda_engine(plan)
    assert engine is not None
    context = engine.create_execution_context()
    given, found = np.arange(6, dtype=np.float32).reshape(2, 3), np.empty((2, 3), np.float32)
    _, stream = cudart.cudaStreamCreate()
    addresses: dict[str, int] = {}
    for name in ("x", "y"):
        error, address = cudart.cudaMalloc(given.nbytes)
        assert error == cudart.cudaError_t.cudaSuccess
        assert address is not None
        assert address % 256 == 0
        context.set_tensor_address(name, address)
        addresses[name] = address
    assert cudart.cudaMemcpyAsync(addresses["x"], given.ctypes.data, given.nbytes, UP, stream) == GOOD
    assert context.execute_async_v3(stream)
    assert cudart.cudaMemcpyAsync(found, addresses["y"], found.nbytes, DOWN, stream) == GOOD
    assert cudart.cudaStreamSynchronize(stream) == GOOD
    np.testing.assert_array_equal(found, -given)
    for address in addresses.values():
        assert cudart.cudaFree(address) == GOOD
        assert cudart.cudaFree(address) == BAD


def test_what_does_not_fit_is_not_copied() -> None:
    _, address = cudart.cudaMallocHost(16)
    assert address is not None
    small = np.zeros(2, np.float64)
    assert cudart.cudaMemset(address, 1, 16) == GOOD
    assert cudart.cudaMemcpy(small, address, 16, DOWN) == GOOD
    assert small.tobytes() == b"\1" * 16
    for target, source, count in (
        (small, address, 24),
        (address + 8, small, 16),
        (0, address, 4),
        (address, small, -1),
    ):
        assert cudart.cudaMemcpy(target, source, count, UP) == BAD
    assert cudart.cudaMemset(address + 15, 0, 2) == BAD
    assert cudart.cudaFreeHost(address) == GOOD


def test_memory_that_there_is_not() -> None:
    assert cudart.cudaMalloc(1 << 62) == (cudart.cudaError_t.cudaErrorMemoryAllocation, None)
    assert cudart.cudaGetErrorName(cudart.cudaError_t.cudaErrorMemoryAllocation)[1] == b"cudaErrorMemoryAllocation"


def test_events() -> None:
    (_, first), (_, second) = cudart.cudaEventCreate(), cudart.cudaEventCreate()
    assert cudart.cudaEventElapsedTime(first, second)[0] != cudart.cudaError_t.cudaSuccess
    for event in (first, second):
        cudart.cudaEventRecord(event)
    error, milliseconds = cudart.cudaEventElapsedTime(first, second)
    assert error == cudart.cudaError_t.cudaSuccess
    assert milliseconds is not None
    assert milliseconds >= 0
    assert cudart.cudaEventDestroy(first) == GOOD


@pytest.mark.parametrize(
    "name", ["cudaMalloc", "cudaMemcpyAsync", "cudaStreamCreate", "cudaEventElapsedTime", "cudaFree"]
)
def test_names_are_those_of_cudas_runtime(name: str) -> None:
    runtime = pytest.importorskip("cuda.bindings.runtime")
    assert hasattr(runtime, name)
