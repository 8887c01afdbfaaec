"""IGpuAllocator: who gives engines and contexts their memory in place of the driver (tensorrt-features.md#13.25, 18.1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from mlirt.tensorrt.enumeration import Enumeration


class AllocatorFlag(Enumeration):
    """What is asked of memory."""

    RESIZABLE = 0


class IGpuAllocator(ABC):
    """The interface."""

    def __init__(self) -> None:
        """Subclasses call this, as TensorRT's binding wants it."""

    @abstractmethod
    def allocate(self, size: int, alignment: int, flags: int) -> int:
        """The address of so many bytes; 0 where there are none."""

    def reallocate(self, address: int, alignment: int, new_size: int) -> int:
        """The address of the same memory with another size; 0 where it cannot be had."""
        return 0

    def free(self, memory: int) -> None:
        """Take memory back (deprecated: `deallocate`)."""

    def deallocate(self, memory: int) -> bool:
        """Take memory back; whether it was of this allocator."""
        self.free(memory)
        return True
