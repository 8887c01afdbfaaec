"""Memory between pages that nothing may touch, which shows reads and writes outside of buffers (`MLIRT_GUARD`).

A read or write beyond the guarded side ends the process with SIGSEGV. What is written beyond the other side, as far as
its page goes, is found when `check` is called.
"""

import ctypes
import math
import mmap
import os
from typing import Literal

import numpy as np

from mlirt.aligned_memory import private_memory
from mlirt.errors import InvalidInputError, PlanError
from mlirt.runtime.systems import this_system

Side = Literal["start", "end"]

_PAGE = mmap.PAGESIZE
_MARGIN_BYTE = 0xA7
_UNWRITTEN_BYTE = 0xFF


def guarded_side() -> Side | None:
    """Which side of each buffer lies against a forbidden page; None where `MLIRT_GUARD` is not set: no buffer has one.

    Raises `InvalidInputError` where it is neither `start` nor `end`.
    """
    given = os.environ.get("MLIRT_GUARD", "")
    if given not in ("", "start", "end"):
        raise InvalidInputError(f"MLIRT_GUARD is {given[:40]!r}: expected start or end, or nothing for no guard pages")
    return None if given == "" else "start" if given == "start" else "end"


class GuardedBlock:
    """Memory of `size` bytes at `address`, whose first or last byte is next to a page that nothing may touch.

    What nobody has written is NaN as a floating-point number.
    """

    def __init__(self, size: int, side: Side) -> None:
        self.size = size
        self._room = -(-max(size, 1) // _PAGE) * _PAGE
        try:
            self._mapping = private_memory(self._room + 2 * _PAGE)
        except MemoryError as error:
            raise MemoryError(f"a block of {size} bytes is not to be had") from error
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._mapping))
        for page in (start, start + _PAGE + self._room):
            this_system().forbid(page, _PAGE)
        self._start = _PAGE + (self._room - size if side == "end" else 0)
        self.address = start + self._start
        self._margin = slice(_PAGE, self._start) if side == "end" else slice(_PAGE + size, _PAGE + self._room)
        self._whole = np.frombuffer(self._mapping, np.uint8)
        self._whole[self._margin] = _MARGIN_BYTE
        self.fill(0, size, _UNWRITTEN_BYTE)

    def fill(self, offset: int, size: int, byte: int) -> None:
        """Write a byte all over part of the block."""
        self.bytes_at(offset, size)[...] = byte

    def bytes_at(self, offset: int, size: int) -> np.ndarray:
        """A part of the block as a writable array of bytes, which keeps the block alive."""
        assert 0 <= offset <= offset + size <= self.size
        return self._whole[self._start + offset : self._start + offset + size]

    def holding(self, array: np.ndarray) -> np.ndarray:
        """The block with the bytes of an array of its size, as an array of that type and shape."""
        held = self.bytes_at(0, self.size).view(array.dtype).reshape(array.shape)
        held[...] = array
        return held

    def check(self, what: str) -> None:
        """Raise `PlanError` where something wrote next to the block, on the side that is not guarded."""
        margin = self._whole[self._margin]
        changed = np.flatnonzero(margin != _MARGIN_BYTE)
        if len(changed):
            side = "before" if self._margin.start == _PAGE and self._margin.stop == self._start else "behind"
            margin[...] = _MARGIN_BYTE
            raise PlanError(f"a kernel wrote {len(changed)} bytes {side} {what}, which has {self.size} bytes")


class GuardedOutput:
    """An output's memory between guard pages, the same for every run."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[np.generic], side: Side) -> None:
        self._block = GuardedBlock(dtype.itemsize * math.prod(shape), side)
        self._array = self._block.bytes_at(0, self._block.size).view(dtype).reshape(shape)
        self.address = self._block.address

    def array(self) -> np.ndarray:
        """The memory as the output's array."""
        return self._array

    def check(self, what: str) -> None:
        """As of the block."""
        self._block.check(what)
