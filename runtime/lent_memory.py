"""Memory that somebody else gives: the caller of a context, or an allocator of the caller's
(tensorrt-features.md#13.13, 18.1).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Allocator(Protocol):
    """Gives and takes back memory where an engine runs: of the host for a CPU, else of the device."""

    def take(self, size: int) -> int:
        """The address of so many bytes; OutOfMemoryError where there are none."""
        ...

    def give_back(self, address: int) -> None:
        """Take memory back that was given."""
        ...


class LentBlock:
    """`size` bytes at `address`, which belong to another one. The address of memory of a device is only passed on."""

    def __init__(self, address: int, size: int) -> None:
        self.address, self.size = address, size

    def fill(self, offset: int, size: int, byte: int) -> None:
        """Write a byte all over part of a block of the host's."""
        assert 0 <= offset <= offset + size <= self.size
        ctypes.memset(self.address + offset, byte, size)

    def bytes_at(self, offset: int, size: int) -> np.ndarray:
        """A part of a block of the host's as a writable array of bytes, which does not keep the block alive."""
        assert 0 <= offset <= offset + size <= self.size
        if not size:
            return np.empty(0, np.uint8)
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(self.address + offset))


class AllocatedBlock(LentBlock):
    """A block of an allocator, which gets it back with its last user."""

    def __init__(self, allocator: Allocator, size: int) -> None:
        super().__init__(allocator.take(size), size)
        self._allocator = allocator

    def __del__(self) -> None:
        allocator = getattr(self, "_allocator", None)  # there is none where nothing was given
        if allocator is not None:
            allocator.give_back(self.address)


Lender = Callable[[int], LentBlock]
"""Gives a block of so many bytes."""


@dataclass(frozen=True)
class ContextMemory:
    """Where a context's memory comes from."""

    arena: Lender
    """For what lies between inputs and outputs."""
    other: Lender | None = None
    """For copies of inputs and outputs on a device; None for memory of the driver."""


def memory_of(allocator: Allocator) -> ContextMemory:
    """All memory of a context from an allocator."""

    def lend(size: int) -> AllocatedBlock:
        return AllocatedBlock(allocator, size)

    return ContextMemory(lend, lend)
