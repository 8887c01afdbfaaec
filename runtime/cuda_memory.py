"""Memory of a CUDA device, and of the host where the device reaches it, given back with its last user."""

import ctypes
from contextlib import suppress
from math import prod

import numpy as np

from mlirt.runtime.current_device import on_its_device
from mlirt.runtime.driver_interface import DeviceError, Driver
from mlirt.runtime.lent_memory import LentBlock


class DeviceBlock:
    """Device memory."""

    def __init__(self, driver: Driver, size: int) -> None:
        self.size = size
        self.driver = driver
        self.address = driver.allocate(size)

    def __del__(self) -> None:
        with suppress(DeviceError, AttributeError):
            self._free()

    @on_its_device
    def _free(self) -> None:
        self.driver.free(self.address)


class DeviceState:
    """A tensor that stays on the device between runs."""

    def __init__(
        self, driver: Driver, shape: tuple[int, ...], dtype: np.dtype[np.generic], block: DeviceBlock | LentBlock
    ) -> None:
        self.shape, self.dtype, self.block = shape, dtype, block
        self.driver = driver

    @property
    def address(self) -> int:
        """Where it lies."""
        return self.block.address

    @on_its_device
    def to_host(self) -> np.ndarray:
        """A copy in the host's memory; waits for the run that makes it."""
        size = self.dtype.itemsize * prod(self.shape)
        staging, stream = PinnedBlock(self.driver, size), self.driver.new_stream()
        try:
            if size:
                self.driver.copy_to_host(staging.address, self.block.address, size, stream)
            self.driver.synchronize(stream)
        finally:
            self.driver.free_stream(stream)
        return staging.bytes[:size].view(self.dtype).reshape(self.shape).copy()


class PinnedBlock:
    """Host memory that the device reads directly."""

    def __init__(self, driver: Driver, size: int) -> None:
        self.size = size
        self.driver = driver
        self.address = driver.allocate_pinned(size)
        self.bytes: np.ndarray = np.ctypeslib.as_array((ctypes.c_uint8 * max(size, 1)).from_address(self.address))

    def __del__(self) -> None:
        with suppress(DeviceError, AttributeError):
            self._free()

    @on_its_device
    def _free(self) -> None:
        self.driver.free_pinned(self.address)
