"""Windows: functions of its own libraries, `VirtualAlloc` and `VirtualProtect`, and the performance counter.

Nobody has run this in Python: there was no such machine. What C libraries do of it runs under Wine (bench/systems.py).
"""

from __future__ import annotations

import ctypes
import time
from functools import cached_property
from typing import Any

_COMMIT_AND_RESERVE, _RELEASE = 0x3000, 0x8000
_NO_ACCESS, _READ_WRITE, _EXECUTE_READ = 0x01, 0x04, 0x20
_LIBRARIES = ("kernel32", "ucrtbase", "ntdll")
_ADDRESS, _WORD, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32


class CodeMemory:
    """Pages that are written once, and then executed."""

    def __init__(self, kernel: Any, code: bytes) -> None:
        self._free = kernel.VirtualFree
        found = kernel.VirtualAlloc(None, len(code), _COMMIT_AND_RESERVE, _READ_WRITE)
        if not found:
            raise MemoryError(f"no memory for {len(code)} bytes of code")
        self.address: int = found
        ctypes.memmove(found, code, len(code))
        before = _INT()
        if not kernel.VirtualProtect(found, len(code), _EXECUTE_READ, ctypes.byref(before)):
            raise OSError("this process may not make code: VirtualProtect refused executable pages")
        kernel.FlushInstructionCache(kernel.GetCurrentProcess(), found, len(code))

    def __del__(self) -> None:
        if hasattr(self, "address"):
            self._free(self.address, 0, _RELEASE)


class WindowsSystem:
    """As the interface says."""

    loads_by_llvm = False

    @cached_property
    def _libraries(self) -> tuple[Any, ...]:
        load: Any = getattr(ctypes, "WinDLL")
        return tuple(load(name) for name in _LIBRARIES)

    @cached_property
    def _kernel(self) -> Any:
        kernel = self._libraries[0]
        kernel.VirtualAlloc.restype = kernel.GetCurrentProcess.restype = _ADDRESS
        kernel.VirtualAlloc.argtypes = [_ADDRESS, _WORD, _INT, _INT]
        kernel.VirtualProtect.argtypes = [_ADDRESS, _WORD, _INT, _ADDRESS]
        kernel.VirtualFree.argtypes = [_ADDRESS, _WORD, _INT]
        kernel.FlushInstructionCache.argtypes = [_ADDRESS, _ADDRESS, _WORD]
        return kernel

    def function(self, name: str) -> int:
        """The first of the libraries that has it counts."""
        for library in self._libraries:
            try:
                return ctypes.cast(getattr(library, name), _ADDRESS).value or 0
            except AttributeError:
                continue
        return 0

    def executable(self, code: bytes) -> CodeMemory:
        """As the interface says."""
        return CodeMemory(self._kernel, code)

    def forbid(self, address: int, size: int) -> None:
        """As the interface says."""
        before = _INT()
        if not self._kernel.VirtualProtect(address, size, _NO_ACCESS, ctypes.byref(before)):
            raise OSError(f"VirtualProtect of {size} bytes failed")

    def nanoseconds(self) -> int:
        """The performance counter, which `time.monotonic` is not before Python 3.13."""
        return time.perf_counter_ns()
