"""Rows about the memory of engines and contexts on a GPU: what the driver says is in use, and what is asked of it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import numpy as np
import pytest
from device_arrays import DeviceArrays, bind
from device_networks import opened, products, products_plan
from layer_networks import CollectingLogger

import mlirt as trt
from mlirt.runtime.cuda_driver import open_driver
from mlirt.runtime.driver_interface import Driver

pytestmark = pytest.mark.gpu
MIB = 1 << 20
ROWS, WIDTHS = 4096, (64, 4096, 64)


def in_use() -> int:
    gc.collect()
    return open_driver().used_memory()


def test_weights_take_as_much_as_in_the_plan() -> None:
    """tensorrt-features.md#18.4: 128 MiB of them, within a tenth; they come back with the engine."""
    logger = CollectingLogger()
    widths = (4096, 4096, 4096)
    plan = products_plan(logger, 1, widths)
    assert len(plan) > 128 * MIB
    opened(plan, logger)  # what the process has once is there now
    attempts = attempts_at(lambda: opened(plan, logger))
    size = pytest.approx(len(plan), rel=0.1)
    assert any(taken == size and abs(left) < 16 * MIB for taken, left in attempts), attempts
    x = np.random.default_rng(1).standard_normal((1, 4096)).astype(np.float32)
    found = opened(plan, logger).engine.run({"x": x})["y"]
    np.testing.assert_allclose(found, products(x, widths), rtol=1e-3, atol=1e-3)


def attempts_at(make: Callable[[], object]) -> list[tuple[int, int]]:
    """What `taken_by` finds, as often as no other process disturbs it."""
    attempts = [taken for _ in range(12) if (taken := taken_by(make)) is not None]
    if not attempts:
        pytest.skip("other processes allocate memory of this device all the time")
    return attempts


def taken_by(make: Callable[[], object]) -> tuple[int, int] | None:
    """Bytes that are in use with what is made, and after it is gone, more than before.

    The driver counts all processes of the device: None where another one allocates at the same time.
    """
    before = steadily_in_use()
    made = make()
    during = steadily_in_use()
    del made
    after = steadily_in_use()
    return None if before is None or during is None or after is None else (during - before, after - before)


def steadily_in_use() -> int | None:
    """What is in use now and a tenth of a second later."""
    now = in_use()
    time.sleep(0.1)
    return now if in_use() == now else None


@contextmanager
def allocations(driver: Driver) -> Generator[dict[int, int]]:
    """Bytes by address that this process allocates on the device meanwhile and has not given back."""
    held: dict[int, int] = {}
    kind, allocate, free = type(driver), type(driver).allocate, type(driver).free

    def counted(self: Driver, size: int) -> int:
        held[address := allocate(self, size)] = size
        return address

    def uncounted(self: Driver, address: int) -> None:
        held.pop(address, None)
        free(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "allocate", counted)
        patch.setattr(kind, "free", uncounted)
        yield held


def check_run(arrays: DeviceArrays, context: trt.IExecutionContext, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((ROWS, WIDTHS[0])).astype(np.float32)
    shape, stream = (ROWS, WIDTHS[-1]), arrays.stream()
    y = arrays.empty(shape)
    bind(context, {"x": arrays.put(x), "y": y})
    assert context.execute_async_v3(stream)
    arrays.driver.synchronize(stream)
    np.testing.assert_allclose(arrays.get(y, shape), products(x, WIDTHS), rtol=1e-3, atol=1e-3)


def test_contexts_take_memory_that_can_be_shared() -> None:
    """tensorrt-features.md#18.5: one takes what the engine says; those without memory take inputs and outputs alone,
    and run by turns in the same block.
    """
    logger, arrays = CollectingLogger(), DeviceArrays()
    engine = opened(products_plan(logger, ROWS, WIDTHS), logger)
    size = engine.device_memory_size
    assert size > 48 * MIB
    with allocations(arrays.driver) as held:
        context = engine.create_execution_context()
        assert size - 2 * MIB <= sum(held.values()) <= size + 16 * MIB
        check_run(arrays, context, 1)
        del context
        gc.collect()
        assert sum(held.values()) <= 2 * MIB  # the arrays of the run
    block = arrays.driver.allocate(size)
    with allocations(arrays.driver) as held:
        contexts = [engine.create_execution_context_without_device_memory() for _ in range(3)]
        for context in contexts:
            context.device_memory = block
        for seed, context in enumerate([*contexts, *contexts]):
            check_run(arrays, context, seed)
        assert sum(held.values()) < size
    arrays.driver.free(block)
