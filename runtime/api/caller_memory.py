"""Memory of the caller, by address: on the host for an engine on the CPU, on the device for one on a GPU."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence

import numpy as np

from mlirt.errors import InvalidInputError
from mlirt.runtime.host_memory import address_of


def read(kind: str, address: int, dtype: np.dtype[np.generic], shape: Sequence[int], stream: int) -> np.ndarray:
    """The array at an address; on a device, once what is on the stream is done, a copy of it."""
    size = math.prod(shape) * dtype.itemsize
    if kind != "cuda":
        return _view(address, size, dtype, tuple(shape))
    from mlirt.runtime.cuda_driver import open_driver

    array = np.empty(tuple(shape), dtype)
    if size:
        driver = open_driver()
        driver.activate()
        driver.copy_to_host(address_of(array), address, size, stream)
        driver.synchronize(stream)
    return array


def write(kind: str, address: int, array: np.ndarray, stream: int) -> None:
    """Put an array at an address."""
    contiguous = np.ascontiguousarray(array)
    if not contiguous.nbytes:
        return
    if kind != "cuda":
        _view(address, contiguous.nbytes, contiguous.dtype, contiguous.shape)[...] = contiguous
        return
    from mlirt.runtime.cuda_driver import open_driver

    driver = open_driver()
    driver.activate()
    driver.copy_to_device(address, address_of(contiguous), contiguous.nbytes, stream)
    driver.synchronize(stream)


def check_is_not_captured(stream: int) -> None:
    """Raise `InvalidInputError` where what comes on a stream is noted for a graph: nobody could wait for it."""
    from mlirt.runtime.cuda_driver import open_driver
    from mlirt.runtime.cuda_program import NOT_CAPTURED

    driver = open_driver()
    driver.activate()
    if driver.is_captured(stream):
        raise InvalidInputError(NOT_CAPTURED)


def _view(address: int, size: int, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> np.ndarray:
    if not address and size:
        raise InvalidInputError("the address of a tensor is 0")
    if not size:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, memoryview((ctypes.c_uint8 * size).from_address(address)))
