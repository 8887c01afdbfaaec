"""Pinned memory of the host, which a GPU reads and writes directly: where inputs of a run lie, and arrays in it."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from mlirt.runtime.cuda_memory import PinnedBlock
from mlirt.runtime.driver_interface import Driver
from mlirt.runtime.host_memory import address_of
from mlirt.runtime.joined_arrays import JoinedArrays

_WORTH_ASKING = 1 << 16
"""Smaller arrays are copied to the staging memory in less time than it takes to ask the driver about them."""


def source_of(driver: Driver, array: np.ndarray, size: int, staging: PinnedBlock, at: int, *, stays: bool) -> int:
    """From where the device copies the first `size` bytes of an array: its own address, or that of a staged copy.

    stays: whether nobody changes the array until the device has read it, so that pinned memory is read where it lies.
    """
    if stays and size >= _WORTH_ASKING and array.nbytes >= size:
        address = address_of(array)
        if driver.is_pinned(address) and driver.is_pinned(address + size - 1):
            return address
    staging.bytes[at : at + size] = array.reshape(-1).view(np.uint8)[:size]
    return staging.address + at


def sources_of(
    driver: Driver, array: np.ndarray | JoinedArrays, size: int, staging: PinnedBlock, at: int, *, stays: bool
) -> Iterator[tuple[int, int, int]]:
    """The copies that bring an input to the device: each one's place in the input, `source_of` it, and its bytes.

    Arrays that are joined are copied one by one, but for neighbours that are staged.
    """
    if not isinstance(array, JoinedArrays):
        yield 0, source_of(driver, array, size, staging, at, stays=stays), size
        return
    begin = end = 0  # of what is staged and not copied yet
    for offset, part in array.placed():
        source = source_of(driver, part, part.nbytes, staging, at + offset, stays=stays)
        if source == staging.address + at + offset:
            begin, end = (begin if end == offset else offset), offset + part.nbytes
            continue
        if end > begin:
            yield begin, staging.address + at + begin, end - begin
            begin = end
        yield offset, source, part.nbytes
    if end > begin:
        yield begin, staging.address + at + begin, end - begin


class PinnedMemory:
    """Arrays in pinned memory; a block comes back into use when the last view of its array is gone."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._free: list[PinnedBlock] = []
        self._lock = threading.RLock()  # a collection of garbage in the midst of `array` may give a block back

    def array(self, shape: Sequence[int], dtype: np.dtype[np.generic]) -> np.ndarray:
        """An uninitialised array; raises `DeviceError` where the host has no memory left that can be pinned."""
        size = prod(shape) * dtype.itemsize
        block = self._block(size)
        memory = (ctypes.c_uint8 * max(size, 1)).from_address(block.address)
        weakref.finalize(memory, self._give_back, block).atexit = False
        return np.ctypeslib.as_array(memory)[:size].view(dtype).reshape(shape)

    def _block(self, size: int) -> PinnedBlock:
        with self._lock:
            fitting = [block for block in self._free if size <= block.size <= 2 * size]
            if fitting:
                block = min(fitting, key=lambda one: one.size)
                self._free.remove(block)
                return block
        return PinnedBlock(self._driver, size)

    def _give_back(self, block: PinnedBlock) -> None:
        with self._lock:
            self._free.append(block)
            while sum(one.size for one in self._free) > _KEPT_BYTES and len(self._free) > 1:
                del self._free[0]


_KEPT_BYTES = 1 << 30
"""The most that is kept for the next arrays."""
