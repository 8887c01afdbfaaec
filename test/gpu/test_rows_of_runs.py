"""Rows about runs on a GPU: their order on the caller's stream, graphs, events, profilers, errors."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

import numpy as np
import pytest
from device_arrays import SECONDS, DeviceArrays, bind
from device_networks import (
    WIDTH,
    gpu_config,
    loop_plan,
    opened,
    plan_of,
    products_plan,
    two_products,
    two_products_plan,
)
from layer_networks import Array, CollectingLogger, new_network
from repeat_plugin import Description, Repeat, RepeatCreator, registered

import mlirt as trt

pytestmark = pytest.mark.gpu
ROWS = 8
CLOSE: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-4}
WIDTHS = (2048, 2048, 2048, 2048)


@cache
def plan() -> bytes:
    return two_products_plan(CollectingLogger())


@cache
def long_plan() -> bytes:
    """Three products that take long beside what it costs to queue them."""
    return products_plan(CollectingLogger(), 2048, WIDTHS)


def numbers(seed: int, rows: int = ROWS) -> Array:
    return np.random.default_rng(seed).standard_normal((rows, WIDTH)).astype(np.float32)


class Run:
    """A context with memory for its tensors and a stream, which has run once so that all code is on the device."""

    def __init__(self, arrays: DeviceArrays, engine: trt.ICudaEngine, rows: int = ROWS) -> None:
        self.arrays, self.shape = arrays, (rows, WIDTH)
        self.context, self.stream = engine.create_execution_context(), arrays.stream()
        self.x, self.y = arrays.put(numbers(0, rows)), arrays.empty(self.shape)
        bind(self.context, {"x": self.x, "y": self.y}, x=self.shape)
        assert self.queue()
        arrays.driver.synchronize(self.stream)
        np.testing.assert_allclose(self.found(), two_products(numbers(0, rows)), **CLOSE)

    def queue(self) -> bool:
        return self.context.execute_async_v3(self.stream)

    def found(self) -> Array:
        return self.arrays.get(self.y, self.shape)


def _import_path() -> str:
    """What a process of its own imports from: the tests' helpers besides all that this one does."""
    return os.pathsep.join([str(Path(__file__).parents[1] / "support"), str(Path(__file__).parent), *sys.path])


def test_a_run_is_queued_on_the_stream() -> None:
    """tensorrt-features.md#13.11: behind a copy that waits, in front of another one; the call does not wait."""
    arrays = DeviceArrays()
    run = Run(arrays, opened(plan(), CollectingLogger()))
    given, taken = arrays.put(numbers(1)), arrays.empty(run.shape)
    size = numbers(1).nbytes
    with arrays.closed(run.stream):
        arrays.driver.copy_on_device(run.x, given, size, run.stream)
        start = time.perf_counter()
        assert run.queue()
        seconds = time.perf_counter() - start
        arrays.driver.copy_on_device(taken, run.y, size, run.stream)
        assert not arrays.is_done(arrays.event_behind(run.stream))
    assert seconds < SECONDS / 5
    np.testing.assert_allclose(arrays.get(taken, run.shape), two_products(numbers(1)), **CLOSE)


def test_runs_on_several_streams_overlap() -> None:
    """tensorrt-features.md#13.11: a run ends while another context's stream is held up.

    Streams that share a queue of the hardware may hold each other up, so that some pairs of streams are tried.
    """
    arrays = DeviceArrays()
    # An engine each: its one profile is the first context's.
    held, *others = [Run(arrays, opened(plan(), CollectingLogger())) for _ in range(5)]
    overlapping: list[Run] = []
    for number, other in enumerate(others):
        arrays.set(other.x, numbers(10 + number))
        with arrays.closed(held.stream):
            assert held.queue()
            assert other.queue()
            if arrays.becomes_done(arrays.event_behind(other.stream), 0.3):
                overlapping.append(other)
        arrays.driver.synchronize(other.stream)
        np.testing.assert_allclose(other.found(), two_products(numbers(10 + number)), **CLOSE)
    assert overlapping


class Held(Repeat):
    """Copies on the device, behind what `before` puts on the stream."""

    before: ClassVar[Callable[[int], None] | None] = None
    arrays: ClassVar[DeviceArrays | None] = None

    def get_workspace_size(self, inputs: Sequence[Description], outputs: Sequence[Description], /) -> int:
        return 0

    def enqueue(
        self,
        input_desc: Sequence[Description],
        output_desc: Sequence[Description],
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream: int,
        /,
    ) -> None:
        arrays, before = type(self).arrays, type(self).before
        assert arrays is not None
        if before is not None:
            before(stream)
        arrays.driver.copy_on_device(outputs[0], inputs[0], 4 * trt.volume(input_desc[0].dims), stream)


def plugin_plan(logger: CollectingLogger, plugin: Repeat, shape: tuple[int, ...]) -> bytes:
    """y = relu(plugin(x))."""
    network = new_network(logger)
    layer = network.add_plugin_v2([network.add_input("x", trt.float32, shape)], plugin)
    y = network.add_activation(layer.get_output(0), trt.ActivationType.RELU).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return plan_of(network, gpu_config(logger), logger)


@pytest.mark.parametrize("way", ["set_input_consumed_event", "execute_async_v2"])
def test_an_event_says_when_inputs_may_be_overwritten(way: str) -> None:
    """tensorrt-features.md#13.12: not before they are read, and while the run still computes; the input is overwritten
    then, and the run does not see it.
    """
    arrays, logger, shape = DeviceArrays(), CollectingLogger(), (ROWS, WIDTH)
    Held.arrays, Held.before = arrays, None
    with registered(RepeatCreator(Held)):
        engine = opened(plugin_plan(logger, Held(), shape), logger)
        context, stream, event = engine.create_execution_context(), arrays.stream(), arrays.driver.new_event()
        x, y = arrays.put(numbers(1)), arrays.empty(shape)
        bind(context, {"x": x, "y": y})

        def queue() -> bool:
            if way == "execute_async_v2":
                return context.execute_async_v2([x, y], stream, event)
            return context.set_input_consumed_event(event) and context.execute_async_v3(stream)

        assert queue()
        arrays.driver.synchronize(stream)
        np.testing.assert_array_equal(arrays.get(y, shape), np.maximum(numbers(1), 0))
        arrays.set(x, numbers(2))
        with arrays.closed(stream):
            assert queue()
            time.sleep(0.05)
            assert not arrays.is_done(event)
        assert arrays.becomes_done(event)
        computes = threading.Event()
        Held.before = lambda of: arrays.wait_on(of, computes)
        arrays.set(x, numbers(3))
        try:
            assert queue()
            assert arrays.becomes_done(event)
            assert not arrays.is_done(arrays.event_behind(stream))
            arrays.set(x, numbers(4))
        finally:
            computes.set()
            arrays.driver.synchronize(stream)
            Held.before = None
        np.testing.assert_array_equal(arrays.get(y, shape), np.maximum(numbers(3), 0))


def test_a_run_is_captured_by_a_graph() -> None:
    """tensorrt-features.md#13.15: nothing runs meanwhile; each replay gives what a run gives, to the bit."""
    arrays = DeviceArrays()
    run = Run(arrays, opened(plan(), CollectingLogger()))
    before = run.found()
    arrays.set(run.x, numbers(1))
    done, graph = arrays.captured(run.stream, run.queue)
    assert done
    arrays.driver.synchronize(run.stream)
    np.testing.assert_array_equal(run.found(), before)
    for seed in (1, 2, 3):
        arrays.set(run.x, numbers(seed))
        arrays.driver.replay(graph, run.stream)
        arrays.driver.synchronize(run.stream)
        replayed = run.found()
        np.testing.assert_allclose(replayed, two_products(numbers(seed)), **CLOSE)
        arrays.set(run.y, np.zeros(run.shape, np.float32))
        assert run.queue()
        arrays.driver.synchronize(run.stream)
        np.testing.assert_array_equal(run.found(), replayed)


def test_a_graph_keeps_addresses_and_shapes() -> None:
    """tensorrt-features.md#13.16: what the context is told later changes runs, and a graph that is captured anew."""
    arrays = DeviceArrays()
    run = Run(arrays, opened(plan(), CollectingLogger()))
    _, graph = arrays.captured(run.stream, run.queue)
    larger = (3000, WIDTH)
    x, y = arrays.put(numbers(5, 3000)), arrays.empty(larger)
    bind(run.context, {"x": x, "y": y}, x=larger)
    for _ in range(2):
        assert run.queue()
        arrays.driver.synchronize(run.stream)
        np.testing.assert_allclose(arrays.get(y, larger), two_products(numbers(5, 3000)), **CLOSE)
        arrays.set(y, np.zeros(larger, np.float32))
        arrays.set(run.x, numbers(6))
        arrays.driver.replay(graph, run.stream)
        arrays.driver.synchronize(run.stream)
        np.testing.assert_allclose(run.found(), two_products(numbers(6)), **CLOSE)
        assert not arrays.get(y, larger).any()
    done, again = arrays.captured(run.stream, run.queue)
    assert done
    arrays.driver.replay(again, run.stream)
    arrays.driver.synchronize(run.stream)
    np.testing.assert_allclose(arrays.get(y, larger), two_products(numbers(5, 3000)), **CLOSE)


class Times(trt.IProfiler):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, float]] = []

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        self.told.append((layer_name, ms))


def test_the_profiler_of_a_captured_run() -> None:
    """tensorrt-features.md#13.17: it is told nothing by the graph, and all layers when it is asked to be."""
    arrays, engine = DeviceArrays(), opened(plan(), CollectingLogger())
    run = Run(arrays, engine)
    run.context.profiler, run.context.enqueue_emits_profile = Times(), False
    times = run.context.profiler
    assert isinstance(times, Times)
    done, graph = arrays.captured(run.stream, run.queue)
    assert done
    arrays.set(run.x, numbers(1))
    arrays.driver.replay(graph, run.stream)
    arrays.driver.synchronize(run.stream)
    assert times.told == []
    np.testing.assert_allclose(run.found(), two_products(numbers(1)), **CLOSE)
    for _ in range(2):
        times.told.clear()
        assert run.context.report_to_profiler()
        assert len(times.told) == len(engine.layers)
        assert all(0 < ms < 1000 for _, ms in times.told)
    arrays.set(run.x, numbers(2))
    arrays.driver.replay(graph, run.stream)
    arrays.driver.synchronize(run.stream)
    np.testing.assert_allclose(run.found(), two_products(numbers(2)), **CLOSE)


def test_a_loop_is_not_captured() -> None:
    """tensorrt-features.md#7.20: the call fails and says so; graph and context can be used behind it."""
    arrays, logger, shape = DeviceArrays(), CollectingLogger(), (8, 64)
    engine = opened(loop_plan(logger), logger)
    context, stream = engine.create_execution_context(), arrays.stream()
    start = np.random.default_rng(1).uniform(0.6, 1, shape).astype(np.float32)
    start[0, 0] = 1
    x, limit, y = arrays.put(start), arrays.put(np.array(16, np.float32)), arrays.empty(shape)
    bind(context, {"x": x, "limit": limit, "y": y})

    def check(turns: int) -> None:
        arrays.set(limit, np.array(2**turns, np.float32))
        arrays.set(y, np.zeros(shape, np.float32))
        assert context.execute_async_v3(stream), logger.text()
        arrays.driver.synchronize(stream)
        np.testing.assert_array_equal(arrays.get(y, shape), start * 2**turns)

    check(4)
    done, graph = arrays.captured(stream, lambda: context.execute_async_v3(stream))
    assert not done
    assert "cudaErrorStreamCaptureUnsupported" in logger.text()
    arrays.set(y, np.zeros(shape, np.float32))
    arrays.driver.replay(graph, stream)
    arrays.driver.synchronize(stream)
    assert not arrays.get(y, shape).any()
    for turns in (6, 1, 9):
        check(turns)


class Memory(trt.IOutputAllocator):
    """Gives the same memory each time, and keeps the shape."""

    def __init__(self, address: int) -> None:
        super().__init__()
        self.address = address
        self.shape: tuple[int, ...] = ()

    def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
        return self.address

    def notify_shape(self, tensor_name: str, shape: trt.Dims) -> None:
        self.shape = tuple(shape)


def test_runs_that_decide_by_data_wait() -> None:
    """tensorrt-features.md#13.27: the call comes back when the run is over, as its output's size is not known before;
    what is on the stream in front of it is waited for.
    """
    arrays, logger = DeviceArrays(), CollectingLogger()
    network = new_network(logger)
    y = network.add_non_zero(network.add_input("x", trt.float32, (4, 32))).get_output(0)
    y.name = "y"
    network.mark_output(y)
    engine = opened(plan_of(network, gpu_config(logger), logger), logger)
    context, stream = engine.create_execution_context(), arrays.stream()
    x, given = arrays.empty((4, 32)), arrays.empty((4, 32))
    memory = Memory(arrays.empty((2, 128), np.int32))
    bind(context, {"x": x})
    assert context.set_output_allocator("y", memory)
    for seed, seconds in ((1, 0.0), (2, 0.5)):
        array = np.random.default_rng(seed).integers(0, 2, (4, 32)).astype(np.float32)
        arrays.set(given, array)
        with arrays.closed(stream) as is_open:
            arrays.driver.copy_on_device(x, given, array.nbytes, stream)
            threading.Timer(seconds, is_open.set).start()
            start = time.perf_counter()
            assert context.execute_async_v3(stream), logger.text()
            taken = time.perf_counter() - start
            expected = np.array(np.nonzero(array), np.int32)
            assert memory.shape == expected.shape
            np.testing.assert_array_equal(arrays.get(memory.address, expected.shape, np.int32), expected)
        assert taken >= seconds * 0.9


def test_times_of_layers_add_up() -> None:
    """tensorrt-features.md#17.9: to that of the run between two events, within a quarter."""
    arrays, logger = DeviceArrays(), CollectingLogger()
    engine = opened(long_plan(), logger)
    context, stream, shape = engine.create_execution_context(), arrays.stream(), (2048, 2048)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    bind(context, {"x": arrays.put(x), "y": arrays.empty(shape)})
    times, begin, end = Times(), arrays.driver.new_event(), arrays.driver.new_event()
    context.enqueue_emits_profile, context.profiler = False, times
    whole: list[float] = []
    sums: list[float] = []
    for _ in range(9):
        arrays.driver.record(begin, stream)
        assert context.execute_async_v3(stream)
        arrays.driver.record(end, stream)
        arrays.driver.synchronize(stream)
        whole.append(arrays.driver.elapsed_ms(begin, end))
        times.told.clear()
        assert context.report_to_profiler()
        assert len(times.told) == len(engine.layers)
        sums.append(sum(ms for _, ms in times.told))
    assert median(whole) > 0.1
    assert median(sums) == pytest.approx(median(whole), rel=0.25)


_FAULT = """
import os
import threading
from numba import cuda
from device_arrays import DeviceArrays, bind
from collecting_recorder import CollectingRecorder
from layer_networks import CollectingLogger
from repeat_plugin import RepeatCreator, registered
from test_rows_of_runs import Held, numbers, opened, plugin_plan
from mlirt.runtime.driver_interface import DeviceError

@cuda.jit("void(float32[::1], int64)")
def store(array, place):
    array[place] = 1

class Vast:
    def __init__(self, address):
        self.__cuda_array_interface__ = {"data": (address, False), "shape": (1 << 44,), "typestr": "<f4", "version": 3}

arrays, logger, shape = DeviceArrays(), CollectingLogger(), (8, 96)
Held.arrays = arrays
with registered(RepeatCreator(Held)):
    engine = opened(plugin_plan(logger, Held(), shape), logger)
    context, stream = engine.create_execution_context(), arrays.stream()
    x = arrays.put(numbers(1))
    bind(context, {"x": x, "y": arrays.empty(shape)})
    context.error_recorder = recorder = CollectingRecorder()
    opened = threading.Event()
    def harmless(of):
        store[1, 1, cuda.external_stream(of)](cuda.as_cuda_array(Vast(x), sync=False), 0)
    def fault(of):
        arrays.wait_on(of, opened)  # so that the run is queued before the kernel faults
        store[1, 1, cuda.external_stream(of)](cuda.as_cuda_array(Vast(x), sync=False), 1 << 43)
    Held.before = harmless
    assert context.execute_async_v3(stream), logger.text()
    arrays.driver.synchronize(stream)
    Held.before = fault
    print("queued", context.execute_async_v3(stream), recorder.num_errors())
    opened.set()
    try:
        arrays.driver.synchronize(stream)
        print("waited")
    except DeviceError as error:
        print("told", error)
    Held.before = None
    print("next", context.execute_async_v3(stream), recorder.num_errors(), logger.text(), flush=True)
    os._exit(0)  # nothing can be given back to the device
"""


def test_errors_of_asynchronous_work_are_told_later(tmp_path: Path) -> None:
    """tensorrt-features.md#17.17: a kernel that writes to nowhere is queued without an error; the next wait, the next
    run and the recorder of errors have it. In a process of its own, whose device can do no more.
    """
    (tmp_path / "fault.py").write_text(_FAULT)
    environment = {**os.environ, "PYTHONPATH": _import_path()}
    command = [sys.executable, str(tmp_path / "fault.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    queued, told, after = done.stdout.strip().split("\n")[:3]
    assert queued == "queued True 0"
    assert told.startswith("told CUDA: cuStreamSynchronize: CUDA_ERROR_")
    assert after.startswith("next False 1 ")
    assert "CUDA_ERROR_" in after


_LAZY = """
import sys
from device_networks import opened
from layer_networks import CollectingLogger

engine = opened(open(sys.argv[1], "rb").read(), CollectingLogger())
device = engine.engine._device
before = device.loaded_modules
context = engine.create_execution_context()
context.set_input_shape("x", (8, 96))
print(before, device.driver.loads_lazily())
import numpy as np
from device_networks import two_products
x = np.random.default_rng(0).standard_normal((8, 96)).astype(np.float32)
np.testing.assert_allclose(engine.engine.run({"x": x})["y"], two_products(x), rtol=1e-4, atol=1e-4)
print(device.loaded_modules)
"""


@pytest.mark.parametrize("mode", ["LAZY", "EAGER"])
def test_code_is_loaded_lazily(mode: str, tmp_path: Path) -> None:
    """tensorrt-features.md#13.24: CUDA_MODULE_LOADING says whether an engine has its code before the first shapes."""
    (tmp_path / "two.plan").write_bytes(plan())
    (tmp_path / "lazy.py").write_text(_LAZY)
    environment = {**os.environ, "PYTHONPATH": _import_path(), "CUDA_MODULE_LOADING": mode}
    command = [sys.executable, str(tmp_path / "lazy.py"), str(tmp_path / "two.plan")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    first, last = done.stdout.strip().split("\n")[:2]
    assert int(last) > 0
    assert first == (f"0 {mode == 'LAZY'}" if mode == "LAZY" else f"{last} False")
