"""tensorrt-features.md#13.13, 13.25, 18.1 and 18.6: memory that a caller gives, on engines for the CPU."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from fake_driver import cuda_plan
from layer_networks import Array, CollectingLogger, constant, new_network
from network_engines import cpu_config
from tiny_plan import tiny_parts

import mlirt as trt
from mlirt.runtime.driver_interface import NoDeviceError
from mlirt.runtime.plan_file import plan_bytes, read_plan

_ALIGNMENT = 256


class CountingAllocator(trt.IGpuAllocator):
    """Memory of NumPy's, with a note of what is out; `most` bytes at once, and none for `fails`."""

    def __init__(self, most: int = 1 << 30, *, fails: bool = False) -> None:
        super().__init__()
        self.most, self.fails = most, fails
        self.blocks: dict[int, Array] = {}
        self.asked: list[tuple[int, int, int]] = []
        self.freed = 0

    def allocate(self, size: int, alignment: int, flags: int) -> int:
        self.asked.append((size, alignment, flags))
        if self.fails or size > self.most:
            return 0
        block = np.full(size + alignment, 0xAB, np.uint8)
        address = block.ctypes.data + (-block.ctypes.data % alignment)
        self.blocks[address] = block
        return address

    def deallocate(self, memory: int) -> bool:
        self.freed += 1
        return self.blocks.pop(memory, None) is not None


class RaisingAllocator(trt.IGpuAllocator):
    """Never has any."""

    def allocate(self, size: int, alignment: int, flags: int) -> int:
        raise ValueError("no more")


def plan_of(logger: CollectingLogger, *, dynamic: bool = False) -> trt.IHostMemory:
    """y = (x @ w) @ w: between the products lies a tensor."""
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (-1 if dynamic else 3, 64))
    none = trt.MatrixOperation.NONE
    weights = constant(network, np.eye(64, dtype=np.float32) * 2)
    first = network.add_matrix_multiply(x, none, weights, none)
    soft = network.add_softmax(first.get_output(0))
    soft.get_output(0).name, soft.axes = "middle", 2
    last = network.add_matrix_multiply(soft.get_output(0), none, weights, none).get_output(0)
    last.name = "y"
    network.mark_output(last)
    config = cpu_config(logger, shapes={"x": ((1, 64), (3, 64), (200, 64))} if dynamic else None)
    plan = trt.Builder(logger).build_serialized_network(network, config)
    assert plan is not None, logger.text()
    return plan


def expected(x: Array) -> Array:
    powers = np.exp(2 * x - (2 * x).max(1, keepdims=True))
    return 2 * powers / powers.sum(1, keepdims=True)


def check_run(context: trt.IExecutionContext, rows: int = 3, *, dynamic: bool = False) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, 64)).astype(np.float32)
    y = np.zeros_like(x)
    if dynamic:
        assert context.set_input_shape("x", x.shape)
    assert context.set_tensor_address("x", x)
    assert context.set_tensor_address("y", y)
    assert context.execute_async_v3(0)
    np.testing.assert_allclose(y, expected(x), rtol=1e-4, atol=1e-6)


def engine_of(runtime: trt.Runtime, plan: trt.IHostMemory) -> trt.ICudaEngine:
    engine = runtime.deserialize_cuda_engine(plan)
    assert engine is not None
    return engine


def test_memory_of_a_context_is_given() -> None:
    """tensorrt-features.md#13.13: nothing runs before it is; then within its bytes, two contexts in the same ones by
    turns.
    """
    logger = CollectingLogger()
    engine = engine_of(trt.Runtime(logger), plan_of(logger))
    size = engine.device_memory_size
    assert size > 0
    block = np.full(size + 3 * _ALIGNMENT, 0x5C, np.uint8)
    start = -block.ctypes.data % _ALIGNMENT + _ALIGNMENT
    first, second = (engine.create_execution_context_without_device_memory() for _ in range(2))
    x = np.ones((3, 64), np.float32)
    assert not first.execute_v2([x.ctypes.data, np.empty_like(x).ctypes.data])
    assert "device_memory is not set" in logger.text()
    first.device_memory = block.ctypes.data + start + 1
    assert first.device_memory == 0
    assert "no multiple of 256" in logger.text()
    for context in (first, second):
        context.device_memory = block.ctypes.data + start
        assert context.device_memory == block.ctypes.data + start
    for context in (first, second, first):
        check_run(context)
    assert (block[start : start + size] != 0x5C).any()  # it was used
    assert (block[:start] == 0x5C).all()
    assert (block[start + size :] == 0x5C).all()


def test_contexts_in_turn_in_one_memory_of_several_shapes() -> None:
    """tensorrt-features.md#13.13: each run finds what others have left there."""
    logger = CollectingLogger()
    engine = engine_of(trt.Runtime(logger), plan_of(logger, dynamic=True))
    block = np.full(engine.device_memory_size + _ALIGNMENT, 0xFF, np.uint8)
    address = block.ctypes.data + (-block.ctypes.data % _ALIGNMENT)
    context = engine.create_execution_context_without_device_memory()
    context.device_memory = address
    for rows in (1, 200, 3, 1):
        check_run(context, rows, dynamic=True)
        block[:] = 0xFF


def test_an_allocator_gives_all_memory() -> None:
    """tensorrt-features.md#18.1: weights and contexts; each block comes back once, with the last that uses it."""
    logger = CollectingLogger()
    plan = plan_of(logger)
    runtime = trt.Runtime(logger)
    runtime.gpu_allocator = allocator = CountingAllocator()
    assert runtime.gpu_allocator is allocator
    engine = engine_of(runtime, plan)
    assert allocator.asked[0][0] >= 64 * 64 * 4  # the weights
    assert {(alignment, flags) for _, alignment, flags in allocator.asked} == {(_ALIGNMENT, 0)}
    before = len(allocator.asked)
    context = engine.create_execution_context()
    assert sum(size for size, *_ in allocator.asked[before:]) >= engine.device_memory_size > 0
    check_run(context)
    assert allocator.blocks
    del context, engine
    assert not allocator.blocks
    assert allocator.freed == len(allocator.asked)


def test_the_builder_hands_its_allocator_on() -> None:
    """tensorrt-features.md#18.1: to the engine that it builds."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (2, 8))
    product = network.add_matrix_multiply(
        x, trt.MatrixOperation.NONE, constant(network, np.eye(8, dtype=np.float32)), trt.MatrixOperation.NONE
    )
    network.mark_output(product.get_output(0))
    builder = trt.Builder(logger)
    builder.gpu_allocator = allocator = CountingAllocator()
    with pytest.warns(DeprecationWarning, match="build_serialized_network"):
        engine = builder.build_engine(network, cpu_config(logger))
    assert engine is not None
    assert allocator.blocks


def test_memory_of_one_context_is_allocated() -> None:
    """tensorrt-features.md#13.25: `temporary_allocator` gives what lies between inputs and outputs, from the next run
    on.
    """
    logger = CollectingLogger()
    context = engine_of(trt.Runtime(logger), plan_of(logger)).create_execution_context()
    context.temporary_allocator = allocator = CountingAllocator()
    assert context.temporary_allocator is allocator
    check_run(context)
    assert [size for size, *_ in allocator.asked] == [context.engine.device_memory_size]
    context.temporary_allocator = None
    assert not allocator.blocks
    check_run(context)


def test_no_memory_for_weights() -> None:
    """tensorrt-features.md#18.6, 31.11: no engine, and the log says what for."""
    logger = CollectingLogger()
    plan = plan_of(logger)
    runtime = trt.Runtime(logger)
    for allocator in (CountingAllocator(fails=True), RaisingAllocator()):
        runtime.gpu_allocator = allocator
        assert runtime.deserialize_cuda_engine(plan) is None
        last = logger.messages[-1][1]
        assert "Allocation failed during deserialization of weights." in last
        assert "Out of memory" in last
    assert "ValueError: no more" in logger.text()


def test_no_memory_for_a_context() -> None:
    """tensorrt-features.md#18.6, 31.11: no context, or no run, and the log names a tensor."""
    logger = CollectingLogger()
    plan = plan_of(logger)
    runtime = trt.Runtime(logger)
    runtime.gpu_allocator = allocator = CountingAllocator()
    engine = engine_of(runtime, plan)
    allocator.fails = True
    assert engine.create_execution_context() is None
    assert "GPU memory allocation failed during initialization of tensor: " in logger.text()
    named = logger.text().partition("initialization of tensor: ")[2].partition(". Out of memory")[0]
    outputs = [cast("list[dict[str, str]]", layer["outputs"]) for layer in engine.engine.layers]
    assert named in {one["name"] for of_layer in outputs for one in of_layer}
    allocator.fails = False
    context = engine.create_execution_context()
    context.temporary_allocator = CountingAllocator(fails=True)
    x = np.ones((3, 64), np.float32)
    assert not context.execute_v2([x.ctypes.data, np.empty_like(x).ctypes.data])
    assert logger.text().count("GPU memory allocation failed during initialization of tensor: ") == 2
    context.temporary_allocator = None
    check_run(context)


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """tensorrt-features.md#31.1: a plan for a GPU is refused in TensorRT's words, then in ours; one for the CPU still
    opens.
    """

    def none_here(ordinal: int) -> None:
        raise NoDeviceError("no CUDA driver (libcuda) is here; build it for the CPU")

    monkeypatch.setattr("mlirt.runtime.cuda.open_driver", none_here)
    logger = CollectingLogger()
    plan = cuda_plan(tiny_parts)
    runtime = trt.Runtime(logger)
    assert runtime.deserialize_cuda_engine(plan_bytes(plan.manifest_json, plan.sections, plan.weights)) is None
    assert "CUDA initialization failure with error 35. Please check CUDA installation: http://" in logger.text()
    assert "build it for the CPU" in logger.text()
    check_run(engine_of(runtime, plan_of(logger)).create_execution_context())


def test_a_plan_of_another_model_of_device() -> None:
    """tensorrt-features.md#21.4, 31.10: TensorRT's warning, and what is other; none where it was made."""
    logger = CollectingLogger()
    runtime, plan = trt.Runtime(logger), plan_of(logger)
    engine_of(runtime, plan)
    assert "across different models of devices" not in logger.text(trt.Severity.WARNING)
    read = read_plan(bytes(plan))
    info = {**read.manifest.info, "machine": {"model": "nonesuch", "cache_bytes": 1}}
    patched = plan_bytes({**read.manifest_json, "info": info}, read.sections, read.weights)
    found = runtime.deserialize_cuda_engine(patched)
    assert found is not None
    text = logger.text(trt.Severity.WARNING)
    assert "Using an engine plan file across different models of devices is not recommended" in text
    assert "its model is " in text
    assert ", and was nonesuch" in text
    assert "cache" not in text.partition("errors.")[2]  # of which nothing is known here
    check_run(found.create_execution_context())
