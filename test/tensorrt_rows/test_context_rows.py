"""Rows of A13, A18 and A20 that an execution context answers on a CPU."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import CollectingLogger, new_network
from network_engines import built, cpu_config

import mlirt as trt

WARNING, INFO = trt.Severity.WARNING, trt.Severity.INFO


def context_of(shape: tuple[int, ...], logger: CollectingLogger, *, detailed: bool = False) -> trt.IExecutionContext:
    """A context of y = -x."""
    network = new_network(logger)
    y = network.add_unary(network.add_input("x", trt.float32, shape), trt.UnaryOperation.NEG).get_output(0)
    y.name = "y"
    network.mark_output(y)
    config = cpu_config(logger)
    if detailed:
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    return built(network, config, logger).create_execution_context()


def test_runs_with_an_implicit_batch_where_it_is_explicit() -> None:
    """tensorrt-features.md#13.4: False, and the log names the call to take."""
    logger = CollectingLogger()
    context = context_of((2,), logger)
    assert not context.execute(1, [0, 0])
    assert not context.execute_async(1, [0, 0], 0)
    assert "use execute_v2" in logger.text()
    assert "use execute_async_v3" in logger.text()


def test_an_empty_tensor_has_an_address() -> None:
    """tensorrt-features.md#13.5, 20.3: 0 is none, also where nothing is read."""
    logger = CollectingLogger()
    context = context_of((0, 3), logger)
    memory = np.zeros(1, np.float32)
    assert context.set_tensor_address("x", 0)
    assert context.set_tensor_address("y", memory.ctypes.data)
    assert not context.execute_async_v3(0)
    assert "the address of 'x' is not set" in logger.text()
    assert context.set_tensor_address("x", memory.ctypes.data)
    assert context.execute_async_v3(0)


def test_a_cache_that_the_device_has_not() -> None:
    """tensorrt-features.md#13.18: more than there is is refused; what is taken is said to change nothing."""
    logger = CollectingLogger()
    context = context_of((2,), logger)
    context.persistent_cache_limit = 1 << 50
    assert context.persistent_cache_limit == 0
    assert "persistent_cache_limit is 1125899906842624; the device has" in logger.text()
    context.persistent_cache_limit = 0
    assert "persistent_cache_limit is kept and changes nothing" in logger.text(INFO)


@pytest.mark.parametrize("detailed", [True, False])
def test_ranges_tell_what_the_build_did(detailed: bool) -> None:
    """tensorrt-features.md#13.21."""
    logger = CollectingLogger()
    context = context_of((2,), logger, detailed=detailed)
    context.nvtx_verbosity = trt.ProfilingVerbosity.DETAILED
    assert (context.nvtx_verbosity is trt.ProfilingVerbosity.DETAILED) == detailed
    assert ("nvtx_verbosity DETAILED is more than" in logger.text(WARNING)) != detailed
    context.nvtx_verbosity = trt.ProfilingVerbosity.NONE
    assert context.nvtx_verbosity is trt.ProfilingVerbosity.NONE


@pytest.mark.parametrize("debug_sync", [False, True])
def test_settings_that_are_kept(debug_sync: bool) -> None:
    """tensorrt-features.md#13.19, 13.20: a run that waits for each launch computes the same."""
    context = context_of((2,), CollectingLogger())
    context.name, context.debug_sync = "first", debug_sync
    assert (context.name, context.debug_sync) == ("first", debug_sync)
    x, y = np.ones(2, np.float32), np.empty(2, np.float32)
    assert context.execute_v2([x.ctypes.data, y.ctypes.data])
    np.testing.assert_array_equal(y, -x)


def test_addresses_need_no_alignment() -> None:
    """tensorrt-features.md#13.5: set, read again, missing ones named; on a CPU an address may be any."""
    logger = CollectingLogger()
    context = context_of((5,), logger)
    memory = np.arange(24, dtype=np.uint8)
    x, y = memory[1:21].view(np.uint8), np.empty(5, np.float32)
    assert context.set_tensor_address("x", x.ctypes.data)
    assert (context.get_tensor_address("x"), context.get_tensor_address("y")) == (x.ctypes.data, 0)
    assert not context.execute_async_v3(0)
    assert "the address of 'y' is not set" in logger.text()
    assert context.set_tensor_address("y", y.ctypes.data)
    assert context.execute_async_v3(0)
    np.testing.assert_array_equal(y, -np.frombuffer(x.tobytes(), np.float32))


@pytest.mark.filterwarnings("ignore:Use del instead:DeprecationWarning")
def test_objects_are_taken_by_with() -> None:
    """tensorrt-features.md#2.20: also inspectors, profiles, timing caches, and what they serialize to."""
    logger = CollectingLogger()
    engine, config = context_of((2,), logger).engine, cpu_config(logger)
    with engine.create_engine_inspector() as inspector, config.create_timing_cache(b"") as cache:
        assert "y" in inspector.get_engine_information(trt.LayerInformationFormat.JSON)
        with cache.serialize() as blob, engine.serialize() as plan:
            assert memoryview(blob).nbytes == blob.nbytes
            assert memoryview(plan).nbytes == plan.nbytes > 0
    with trt.Builder(logger).create_optimization_profile() as profile:
        profile.set_shape("x", (1,), (2,), (3,))


def test_memory_that_a_profile_may_take() -> None:
    """tensorrt-features.md#12.6: from 0 to 1."""
    profile = trt.Builder(CollectingLogger()).create_optimization_profile()
    profile.extra_memory_target = 0.5
    with pytest.raises(ValueError, match=r"extra_memory_target: expected a number from 0 to 1, got 1\.5"):
        profile.extra_memory_target = 1.5
    assert profile.extra_memory_target == 0.5
