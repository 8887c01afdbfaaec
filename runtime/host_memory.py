"""Blocks of host memory on page boundaries, on 2 MiB pages where the system offers them."""

import ctypes
import sys

import numpy as np

from mlirt.aligned_memory import ALIGNMENT, private_memory
from mlirt.aligned_memory import LARGE_PAGE as HUGE_PAGE

__all__ = ["ALIGNMENT", "HUGE_PAGE", "HostBlock", "OutputMemory", "address_of", "aligned_empty", "aligned_part"]


class HostBlock:
    """Zeroed memory of `size` bytes at `address`, a multiple of 4096 (of 2 MiB where it is that large)."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._mapping = private_memory(max(size, 1) + (HUGE_PAGE if size >= HUGE_PAGE else 0))
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._mapping))
        self.address = start + (-start % HUGE_PAGE if size >= HUGE_PAGE else 0)

    def fill(self, offset: int, size: int, byte: int) -> None:
        """Write a byte all over part of the block."""
        assert 0 <= offset <= offset + size <= self.size
        ctypes.memset(self.address + offset, byte, size)

    def bytes_at(self, offset: int, size: int) -> np.ndarray:
        """A part of the block as a writable array of bytes, which keeps the block alive."""
        assert 0 <= offset <= offset + size <= self.size
        base = self.address - ctypes.addressof(ctypes.c_char.from_buffer(self._mapping))
        return np.frombuffer(self._mapping, np.uint8, size, base + offset) if size else np.empty(0, np.uint8)


def address_of(array: np.ndarray) -> int:
    """The address of an array's first byte."""
    if array.nbytes and array.flags.writeable:
        try:
            # A third of the time of NumPy's own way, which every run would take for each input.
            return ctypes.addressof(ctypes.c_char.from_buffer(array))  # pyright: ignore[reportArgumentType]
        except (BufferError, TypeError, ValueError):
            pass  # elements that no buffer can have, or that do not lie one behind the other
    return array.ctypes.data


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[np.generic], alignment: int = ALIGNMENT) -> np.ndarray:
    """An uninitialised contiguous array whose address is a multiple of `alignment`."""
    count = dtype.itemsize
    for dim in shape:
        count *= dim
    return aligned_part(np.empty(count + alignment, np.uint8), shape, dtype, alignment)


def aligned_part(
    memory: np.ndarray, shape: tuple[int, ...], dtype: np.dtype[np.generic], alignment: int = ALIGNMENT
) -> np.ndarray:
    """The first array in some bytes whose address is a multiple of `alignment`."""
    return np.ndarray(shape, dtype, memory, -memory.ctypes.data % alignment)


class OutputMemory:
    """Arrays for the results of one output: memory comes back into use once nobody holds the array that it was in.

    New memory from the system costs more than many kernels do, for every page is zeroed at its first touch.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
        self._shape, self._dtype = shape, dtype
        self._whole: np.ndarray | None = None
        self._start = 0
        self.address = 0
        """Where the last array lies."""

    def array(self) -> np.ndarray:
        """An uninitialised array that nobody else has."""
        # Every view keeps the whole alive: with two references, the attribute and the argument, there is none left.
        if self._whole is None or sys.getrefcount(self._whole) > 2:
            self._whole = None
            fresh = aligned_empty(self._shape, self._dtype)
            self.address = address_of(fresh)
            if isinstance(fresh.base, np.ndarray):
                self._whole, self._start = fresh.base, self.address - address_of(fresh.base)
            return fresh
        return np.ndarray(self._shape, self._dtype, self._whole, self._start)
