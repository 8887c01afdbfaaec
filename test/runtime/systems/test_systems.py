"""Memory for code as each system gives it: by stand-ins for the functions of macOS and of Windows."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import pytest

from mlirt.runtime.systems import this_system
from mlirt.runtime.systems.darwin import DarwinSystem
from mlirt.runtime.systems.linux import LinuxSystem
from mlirt.runtime.systems.windows import WindowsSystem

CODE = b"\xc3" * 5000


class Function:
    """A function of a library: it writes down how it is called."""

    argtypes: Any = None

    def __init__(self, name: str, calls: list[tuple[str, ...]], result: Any) -> None:
        self._name, self._calls, self._result = name, calls, result

    def __call__(self, *given: Any) -> Any:
        self._calls.append((self._name, *[str(one) for one in given if isinstance(one, int)]))
        return self._result(*given) if callable(self._result) else self._result


class Library:
    """Functions with results; those that are not named are not there."""

    def __init__(self, calls: list[tuple[str, ...]], **results: Any) -> None:
        for name, result in results.items():
            setattr(self, name, Function(name, calls, result))


@pytest.fixture
def room() -> Any:
    return ctypes.create_string_buffer(8192)


def test_this_system_is_that_of_the_process() -> None:
    system = this_system()
    assert isinstance(system, LinuxSystem)
    assert system.loads_by_llvm
    assert abs(system.nanoseconds() - time.monotonic_ns()) < 1e9


def test_windows_writes_first_and_executes_then(room: Any) -> None:
    calls: list[tuple[str, ...]] = []
    at = ctypes.addressof(room)
    kernel = Library(
        calls, VirtualAlloc=at, VirtualProtect=1, FlushInstructionCache=1, GetCurrentProcess=-1, VirtualFree=1
    )
    system: Any = WindowsSystem()
    system.__dict__["_libraries"] = (kernel,)
    memory = system.executable(CODE)
    assert memory.address == at
    assert room.raw[: len(CODE)] == CODE
    assert calls == [
        ("VirtualAlloc", "5000", str(0x3000), "4"),
        ("VirtualProtect", str(at), "5000", str(0x20)),
        ("GetCurrentProcess",),
        ("FlushInstructionCache", "-1", str(at), "5000"),
    ]
    calls.clear()
    del memory
    assert calls == [("VirtualFree", str(at), "0", str(0x8000))]
    system.forbid(at, 4096)
    assert calls[-1] == ("VirtualProtect", str(at), "4096", "1")
    assert system.function("no_function") == 0


def test_windows_says_where_code_is_not_allowed(room: Any) -> None:
    calls: list[tuple[str, ...]] = []
    system: Any = WindowsSystem()
    system.__dict__["_libraries"] = (
        Library(calls, VirtualAlloc=ctypes.addressof(room), VirtualProtect=0, GetCurrentProcess=-1, VirtualFree=1,
                FlushInstructionCache=1),
    )  # fmt: skip
    with pytest.raises(OSError, match="this process may not make code"):
        system.executable(CODE)
    system.__dict__["_libraries"][0].VirtualAlloc = Function("VirtualAlloc", calls, None)
    with pytest.raises(MemoryError, match="no memory for 5000 bytes of code"):
        system.executable(CODE)


@pytest.mark.parametrize("is_hardened", [False, True])
def test_macos_asks_for_memory_for_code_where_it_is_hardened(is_hardened: bool, room: Any) -> None:
    calls: list[tuple[str, ...]] = []
    at = ctypes.addressof(room)
    system: Any = DarwinSystem()
    system.__dict__["libc"] = Library(
        calls,
        mmap=at,
        munmap=0,
        mprotect=-1 if is_hardened else 0,
        sys_icache_invalidate=None,
        pthread_jit_write_protect_np=None,
    )
    system.function = {"pthread_jit_write_protect_np": 1}.get
    memory = system.executable(CODE)
    assert room.raw[: len(CODE)] == CODE
    first = [("mmap", "5000", "3", str(0x1000 | 2), "-1", "0"), ("mprotect", str(at), "5000", "5")]
    hardened = [
        ("munmap", str(at), "5000"),
        ("mmap", "5000", "7", str(0x1000 | 0x800 | 2), "-1", "0"),
        ("pthread_jit_write_protect_np", "0"),
        ("pthread_jit_write_protect_np", "1"),
    ]
    assert [one for one in calls if one[0] != "munmap"] == [
        one
        for one in [*first, *(hardened if is_hardened else []), ("sys_icache_invalidate", str(at), "5000")]
        if one[0] != "munmap"
    ]
    del memory
    assert calls[-1] == ("munmap", str(at), "5000")
