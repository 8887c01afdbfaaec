"""Inputs in pinned memory are read where they lie by runs that are waited for; arrays in it are used again."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver, Maker, cuda_plan

from mlirt.errors import InvalidInputError
from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.cuda import CudaDevice
from mlirt.runtime.host_memory import address_of
from mlirt.runtime.joined_arrays import JoinedArrays
from mlirt.runtime.pinned_memory import PinnedMemory
from mlirt.runtime.run_ahead import RunAhead

ROWS, SMALL = 8192, 64
FLOAT = np.dtype(np.float32)


def opened(tiny: Maker) -> tuple[CudaDevice, FakeDriver, ExecutionContext]:
    plan, driver = cuda_plan(tiny), FakeDriver()
    device = CudaDevice(plan, driver)
    driver.copied_from.clear()
    return device, driver, ExecutionContext(plan.manifest, device.session())


def numbers(x: np.ndarray) -> np.ndarray:
    x[...] = np.random.default_rng(0).standard_normal(x.shape)
    return x


@pytest.mark.parametrize(("rows", "is_read_in_place"), [(ROWS, True), (SMALL, False)])
def test_a_run_reads_pinned_arrays_where_they_lie(tiny: Maker, rows: int, is_read_in_place: bool) -> None:
    device, driver, context = opened(tiny)
    pinned = numbers(device.host_array((rows, 4), FLOAT))
    found = context.run({"x": pinned})
    assert driver.copied_from == [address_of(pinned)] or not is_read_in_place
    assert (address_of(pinned) in driver.copied_from) == is_read_in_place
    usual = context.run({"x": pinned.copy()})
    assert all((found[name] == array).all() for name, array in usual.items())


def test_other_arrays_are_staged(tiny: Maker) -> None:
    _, driver, context = opened(tiny)
    x = numbers(np.empty((ROWS, 4), np.float32))
    context.run({"x": x})
    assert len(driver.copied_from) == 1
    assert driver.copied_from[0] != address_of(x)


def test_arrays_that_are_joined_are_read_where_they_lie(tiny: Maker) -> None:
    """Those in pinned memory by a copy each, neighbours in ordinary memory by one of their staged bytes."""
    device, driver, context = opened(tiny)
    x = numbers(np.empty((3 * ROWS + 9, 4), np.float32))
    pinned = device.host_array((ROWS, 4), FLOAT)
    pinned[...] = x[:ROWS]
    last = device.host_array((ROWS, 4), FLOAT)
    last[...] = x[-ROWS:]
    middle = [x[ROWS : ROWS + 4], x[ROWS + 4 : ROWS + 4], x[ROWS + 4 : -ROWS]]
    joined: Any = JoinedArrays([pinned, *middle, last])
    found = context.run({"x": joined})
    first, staged, third = driver.copied_from
    assert (first, third) == (address_of(pinned), address_of(last))
    assert staged not in (address_of(one) for one in (x, *middle))
    usual = context.run({"x": x})
    assert all((found[name] == array).all() for name, array in usual.items())


@pytest.mark.parametrize("parts", [[], [(2, 3), (2, 4)], [(2, 3), (3,)], [()]])
def test_arrays_that_cannot_be_joined(parts: list[tuple[int, ...]]) -> None:
    with pytest.raises(InvalidInputError, match="to join, got"):
        JoinedArrays([np.zeros(shape, np.float32) for shape in parts])
    with pytest.raises(InvalidInputError, match=r"shape \[rows, 3\] to join, got int8 and \[2, 3\] \(number 1\)"):
        JoinedArrays([np.zeros((1, 3), np.float32), np.zeros((2, 3), np.int8)])


def test_half_of_an_array_in_pinned_memory_is_none(tiny: Maker) -> None:
    """Its end decides as its start does."""
    device, driver, context = opened(tiny)
    pinned = numbers(device.host_array((ROWS, 4), FLOAT))
    driver.pinned_at[address_of(pinned)] = pinned.nbytes // 2
    context.run({"x": pinned})
    assert address_of(pinned) not in driver.copied_from
    driver.pinned_at[address_of(pinned)] = pinned.nbytes


def test_runs_that_nobody_waits_for_have_a_copy(tiny: Maker) -> None:
    """Their caller may write the next input while the device still reads the last one."""
    device, driver, context = opened(tiny)
    pinned = numbers(device.host_array((ROWS, 4), FLOAT))
    plan_contexts = [context, ExecutionContext(context._manifest, device.session())]  # pyright: ignore[reportPrivateUsage]
    runs = RunAhead(plan_contexts, {"x": pinned}, resident=False)
    runs()
    runs.drain()
    context.bind({"x": pinned})()
    assert driver.copied_from
    assert address_of(pinned) not in driver.copied_from


def test_memory_is_used_again_when_nobody_has_it() -> None:
    driver = FakeDriver()
    memory = PinnedMemory(driver)
    first = memory.array((100, 4), FLOAT)
    part, address = first[50:], address_of(first)
    del first
    gc.collect()
    other = memory.array((100, 4), FLOAT)
    assert address_of(other) != address  # a view is left
    del part
    gc.collect()
    again = memory.array((90, 4), FLOAT)
    assert address_of(again) == address
    small = memory.array((2, 4), FLOAT)
    assert address_of(small) != address
    assert driver.pinned == [1600, 1600, 32]


def test_arrays_of_many_threads_are_apart() -> None:
    memory, wrong = PinnedMemory(FakeDriver()), list[float]()

    def work(number: int) -> None:
        for _ in range(200):
            array = memory.array((256,), FLOAT)
            array[:] = number
            wrong.extend(array[array != number].tolist())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("shape", [(), (0, 3), (5,)])
def test_any_shape(shape: tuple[int, ...]) -> None:
    array = PinnedMemory(FakeDriver()).array(shape, np.dtype(np.int64))
    array[...] = 7
    assert array.shape == shape
    assert array.dtype == np.int64
    assert array.flags.writeable
