"""The interface of an operating system: functions by their names, memory for code, pages that nothing may touch, and a
clock. Threads are Python's; what they sleep on is called by the code itself (builder/spmd_code/systems.py).
"""

from __future__ import annotations

from typing import Protocol


class ExecutableMemory(Protocol):
    """Code in memory, at an address that is a multiple of a page; it stays there as long as this object lives."""

    @property
    def address(self) -> int: ...


class System(Protocol):
    """One operating system."""

    loads_by_llvm: bool
    """Whether LLVM's loader brings objects into memory; else runtime/code_image.py does."""

    def function(self, name: str) -> int:
        """The address of a function of the system or of its C library; 0 where there is none."""
        ...

    def executable(self, code: bytes) -> ExecutableMemory:
        """Memory with code in it, which is not writable any more; raises MemoryError, or OSError where the system does
        not let this process make code.
        """
        ...

    def forbid(self, address: int, size: int) -> None:
        """Let nothing read or write whole pages; raises OSError."""
        ...

    def nanoseconds(self) -> int:
        """The time of the clock that the code of plans reads."""
        ...
