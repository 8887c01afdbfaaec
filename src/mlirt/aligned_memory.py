"""Memory at addresses that kernels can use, on large pages where the system offers them."""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

ALIGNMENT = 64
LARGE_PAGE = 1 << 21
_FIRST_BLOCK, _MAX_BLOCK = 1 << 20, 1 << 24


def private_memory(size: int) -> mmap.mmap:
    """Zeroed memory. Python's default would be shared with forked children, and gets no large pages."""
    try:
        if hasattr(mmap, "MAP_PRIVATE"):
            memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        else:
            memory = mmap.mmap(-1, size)
    except (OSError, OverflowError, ValueError) as error:
        raise MemoryError(f"a block of {size} bytes is not to be had") from error
    if size >= LARGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # the kernel was built without large pages: small ones do the same, slower
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def is_aligned(array: Array) -> bool:
    """Whether an array lies in C order from an address on at which kernels can read it."""
    return array.flags.c_contiguous and array.ctypes.data % ALIGNMENT == 0


class AlignedMemory:
    """Copies of arrays at aligned addresses, small ones side by side in a few blocks, which they keep alive."""

    def __init__(self) -> None:
        self._block: Array | None = None
        self._used = 0
        self._last = 0
        self._next_size = _FIRST_BLOCK

    def copy_of(self, array: Array) -> Array:
        """A copy of an array in C order."""
        import numpy as np

        if not array.nbytes:
            return np.ascontiguousarray(array).reshape(array.shape)
        space = self._space(array.nbytes)
        copy = space.view(array.dtype).reshape(array.shape)
        copy[...] = array
        return copy

    def take_back(self, copy: Array) -> None:
        """The copy that was made last is not needed: the next one may lie there."""
        if self._block is not None and copy.nbytes and copy.ctypes.data == self._block.ctypes.data + self._last:
            self._used = self._last

    def _space(self, size: int) -> Array:
        if size > _MAX_BLOCK // 4:
            return _block(size)
        start = -(-self._used // ALIGNMENT) * ALIGNMENT
        if self._block is None or start + size > self._block.nbytes:
            self._block = _block(max(self._next_size, size))
            self._next_size = min(2 * self._next_size, _MAX_BLOCK)
            start = 0
        self._last, self._used = start, start + size
        return self._block[start : start + size]


def _block(size: int) -> Array:
    """So many bytes; from the boundary of a large page on where they fill one."""
    import numpy as np

    slack = LARGE_PAGE if size >= LARGE_PAGE else 0
    whole = np.frombuffer(private_memory(size + slack), np.uint8)
    start = -whole.ctypes.data % LARGE_PAGE if slack else 0
    return whole[start : start + size]
