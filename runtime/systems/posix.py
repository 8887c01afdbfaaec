"""Memory for code and forbidden pages by the functions that Linux and macOS share."""

from __future__ import annotations

import ctypes
import os
import time
from functools import cached_property
from typing import Any

READ, WRITE, EXECUTE = 1, 2, 4
_PRIVATE = 2
_WORD, _INT = ctypes.c_size_t, ctypes.c_int


class Mapping:
    """Some pages of memory, which go back to the system with this object."""

    def __init__(self, libc: Any, size: int, protection: int, flags: int) -> None:
        self._unmap = libc.munmap
        self.size = size
        found = libc.mmap(None, size, protection, flags | _PRIVATE, -1, 0)
        if found in (None, ctypes.c_void_p(-1).value):
            error = ctypes.get_errno()
            raise OSError(error, f"no memory for {size} bytes of code: {os.strerror(error)}")
        self.address: int = found

    def write(self, code: bytes) -> None:
        """Put code at its beginning."""
        ctypes.memmove(self.address, code, len(code))

    def __del__(self) -> None:
        if hasattr(self, "address"):
            self._unmap(self.address, self.size)


class PosixSystem:
    """What both have; a system adds its own flags."""

    anonymous = 0
    """The flag of `mmap` for memory without a file."""

    @cached_property
    def libc(self) -> Any:
        """What the process has loaded, with the types of the functions that are called here."""
        library: Any = ctypes.CDLL(None, use_errno=True)
        library.mmap.restype = ctypes.c_void_p
        library.mmap.argtypes = [ctypes.c_void_p, _WORD, _INT, _INT, _INT, ctypes.c_long]
        library.munmap.argtypes = [ctypes.c_void_p, _WORD]
        library.mprotect.argtypes = [ctypes.c_void_p, _WORD, _INT]
        return library

    def function(self, name: str) -> int:
        """As `dlsym` finds it."""
        try:
            return ctypes.cast(getattr(self.libc, name), ctypes.c_void_p).value or 0
        except AttributeError:
            return 0

    def executable(self, code: bytes) -> Mapping:
        """Written first, then made executable: no page is both."""
        mapping = Mapping(self.libc, len(code), READ | WRITE, self.anonymous)
        mapping.write(code)
        self.protect(mapping.address, len(code), READ | EXECUTE)
        return mapping

    def protect(self, address: int, size: int, protection: int) -> None:
        """Change what may be done with pages; raises OSError."""
        if self.libc.mprotect(address, size, protection):
            error = ctypes.get_errno()
            raise OSError(error, f"mprotect of {size} bytes failed: {os.strerror(error)}")

    def forbid(self, address: int, size: int) -> None:
        """As the interface says."""
        self.protect(address, size, 0)

    def nanoseconds(self) -> int:
        """The clock of `time.monotonic`."""
        return time.monotonic_ns()
