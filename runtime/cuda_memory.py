"""Memory of a CUDA device, and of the host where the device reaches it, given back with its last user."""

import ctypes
from contextlib import suppress

import numpy as np

from mlirt.runtime.driver_interface import DeviceError, Driver


class DeviceBlock:
    """Device memory."""

    def __init__(self, driver: Driver, size: int) -> None:
        self.size = size
        self._driver = driver
        self.address = driver.allocate(size)

    def __del__(self) -> None:
        with suppress(DeviceError, AttributeError):
            self._driver.activate()
            self._driver.free(self.address)


class PinnedBlock:
    """Host memory that the device reads directly."""

    def __init__(self, driver: Driver, size: int) -> None:
        self.size = size
        self._driver = driver
        self.address = driver.allocate_pinned(size)
        self.bytes: np.ndarray = np.ctypeslib.as_array((ctypes.c_uint8 * max(size, 1)).from_address(self.address))

    def __del__(self) -> None:
        with suppress(DeviceError, AttributeError):
            self._driver.activate()
            self._driver.free_pinned(self.address)
