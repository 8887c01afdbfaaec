"""Code of plans for Windows and macOS, run in this process, which is Linux: the processor is the same.

What differs is how functions are called, and which functions of the system there are. LLVM writes both ways: functions
here stand for those of the other system, and are called as its code calls; those that Python calls are entered by a
function that calls as that code expects it. Started as a program it compares plans for macOS with Linux's of the same
processor (bench/systems.py starts it in an emulator).
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import mlirt
from mlirt.runtime import host_cpu, object_linker, stop_request, worker_groups
from mlirt.runtime.elf_sections import ElfObject
from mlirt.runtime.elf_symbols import ElfSymbols
from mlirt.runtime.host_cpu import host_architecture
from mlirt.runtime.llvm_binding import llvm
from mlirt.runtime.object_linker import LinkedCode
from mlirt.runtime.systems import System
from mlirt.runtime.systems.linux import LinuxSystem
from mlirt.runtime.worker_groups import ThreadChoice, WorkerGroups
from mlirt.systems import DARWIN, WINDOWS, triple_of

_DECLARED = """
declare ptr @calloc(i64, i64)
declare i32 @sem_init(ptr, i32, i32)
declare i32 @sem_wait(ptr)
declare i32 @sem_post(ptr)
declare i32 @sched_yield()
declare i32 @clock_gettime(i32, ptr)
declare ptr @memset(ptr, i32, i64)
declare ptr @memcpy(ptr, ptr, i64)
define internal i64 @monotonic() {
  %time = alloca {i64, i64}
  call i32 @clock_gettime(i32 1, ptr %time)
  %at = getelementptr i64, ptr %time, i64 1
  %seconds = load i64, ptr %time
  %nanos = load i64, ptr %at
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %nanos
  ret i64 %sum
}
define internal ptr @semaphore() {
  %made = call ptr @calloc(i64 1, i64 64)
  call i32 @sem_init(ptr %made, i32 0, i32 0)
  ret ptr %made
}
"""
_WINDOWS = """
define win64cc ptr @foreign_CreateSemaphoreA(ptr %security, i32 %first, i32 %most, ptr %name) {
  %made = call ptr @semaphore()
  ret ptr %made
}
define win64cc i32 @foreign_WaitForSingleObject(ptr %handle, i32 %milliseconds) {
  %failed = call i32 @sem_wait(ptr %handle)
  ret i32 %failed
}
define win64cc i32 @foreign_ReleaseSemaphore(ptr %handle, i32 %count, ptr %before) {
  call i32 @sem_post(ptr %handle)
  ret i32 1
}
define win64cc i32 @foreign_SwitchToThread() {
  call i32 @sched_yield()
  ret i32 1
}
define win64cc i32 @foreign_QueryPerformanceCounter(ptr %place) {
  %now = call i64 @monotonic()
  %ticks = udiv i64 %now, 100
  store i64 %ticks, ptr %place
  ret i32 1
}
define win64cc i32 @foreign_QueryPerformanceFrequency(ptr %place) {
  store i64 10000000, ptr %place
  ret i32 1
}
"""
_DARWIN = """
define ptr @foreign_dispatch_semaphore_create(i64 %first) {
  %made = call ptr @semaphore()
  ret ptr %made
}
define i64 @foreign_dispatch_semaphore_wait(ptr %one, i64 %until) {
  %failed = call i32 @sem_wait(ptr %one)
  %wide = sext i32 %failed to i64
  ret i64 %wide
}
define i64 @foreign_dispatch_semaphore_signal(ptr %one) {
  call i32 @sem_post(ptr %one)
  ret i64 0
}
define i64 @foreign_clock_gettime_nsec_np(i32 %clock) {
  %now = call i64 @monotonic()
  ret i64 %now
}
define i32 @foreign_sched_yield() {
  %done = call i32 @sched_yield()
  ret i32 %done
}
define void @foreign___bzero(ptr %place, i64 %size) {
  call ptr @memset(ptr %place, i32 0, i64 %size)
  ret void
}
define void @foreign_bzero(ptr %place, i64 %size) {
  call ptr @memset(ptr %place, i32 0, i64 %size)
  ret void
}
"""
_SIGNATURES = {
    "memset": ("ptr", "ptr", "i32", "i64"),
    "memcpy": ("ptr", "ptr", "ptr", "i64"),
    "powf": ("float", "float", "float"),
    "fmod": ("double", "double", "double"),
    **{name: ("double", "double") for name in ("sin", "cos", "tan")},
    "cosf": ("float", "float"),
}
"""What is the C library's on each system: the type of the result, and those of the arguments."""
_ENTERED = {
    "mlirt_run": 4,
    "mlirt_alone": 1,
    "mlirt_worker": 2,
    "mlirt_prepare": 2,
    "mlirt_spin": 1,
    "mlirt_lengths": 4,
}
"""How many words the functions take that Python calls."""


class ForeignSystem(LinuxSystem):
    """Another system, as far as code can tell."""

    loads_by_llvm = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[str] = []

    def function(self, name: str) -> int:
        """Nothing where the other system does not have it."""
        self.asked.append(name)
        return _functions(self.name).get(name, 0)

    def entered(self, address: int, words: int) -> int:
        """A function of this system that calls one of the other system's, with so many words."""
        return _entered(self.name, address, words)


def _loaded(source: str) -> Any:
    machine = llvm().Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm().create_mcjit_compiler(llvm().parse_assembly(source), machine)
    engine.finalize_object()
    _kept.append(engine)
    return engine


_kept: list[Any] = []


def _convention(system: str) -> str:
    return "win64cc" if system == WINDOWS else ""


@cache
def _functions(system: str) -> Mapping[str, int]:
    """The functions of a system by their names."""
    source = [_DECLARED, _WINDOWS if system == WINDOWS else _DARWIN]
    for name, (result, *kinds) in _SIGNATURES.items():
        taken = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds))
        if f"@{name}(" not in _DECLARED:
            source.append(f"declare {result} @{name}({', '.join(kinds)})")
        source.append(
            f"define {_convention(system)} {result} @foreign_{name}({taken}) {{\n"
            f"  %result = call {result} @{name}({taken})\n  ret {result} %result\n}}"
        )
    text = "\n".join(source)
    LinuxSystem().function("cosf")  # for its library
    engine = _loaded(text)
    names = [line.split("@foreign_")[1].split("(")[0] for line in text.splitlines() if "@foreign_" in line]
    return {name: engine.get_function_address(f"foreign_{name}") for name in names}


def _entered(system: str, address: int, words: int) -> int:
    """A function of this system that calls one of the other system's at an address."""
    taken = ", ".join(f"i64 %a{i}" for i in range(words))
    source = (
        f"define i64 @enter({taken}) {{\n  %to = inttoptr i64 {address} to ptr\n"
        f"  %result = call {_convention(system)} i64 %to({taken})\n  ret i64 %result\n}}"
    )
    return _loaded(source).get_function_address("enter")


@contextmanager
def running_as(system: str) -> Generator[ForeignSystem]:
    """Let plans for a system be loaded and run here."""
    there, triple, load = ForeignSystem(system), triple_of(host_architecture(), system), LinkedCode._load  # pyright: ignore[reportPrivateUsage]

    def load_there(
        self: LinkedCode,
        read: Mapping[str, ElfObject],
        tables: Mapping[str, ElfSymbols],
        needed: Sequence[tuple[str, str]],
        given: System,
    ) -> None:
        load(self, read, tables, needed, given)
        for (section, symbol), address in self.addresses.items():
            if symbol in _ENTERED:
                self.addresses[section, symbol] = there.entered(address, _ENTERED[symbol])

    groups: dict[ThreadChoice, WorkerGroups] = {}
    with ExitStack() as patches:
        for module in (object_linker, host_cpu):
            patches.enter_context(patch.object(module, "host_triple", lambda: triple))
        for module in (object_linker, stop_request):
            patches.enter_context(patch.object(module, "this_system", lambda: there))
        patches.enter_context(patch.object(LinkedCode, "_load", load_there))
        patches.enter_context(patch.object(worker_groups, "_groups", groups))
        yield there
        for started in groups.values():
            started.stop()
        _kept.append(groups)


def main(folder: Path) -> None:
    """Compare `N.darwin` with `N.linux`, plans both, for the inputs in `N_K.npz`."""
    for path in sorted(folder.glob("*.linux"), key=lambda one: int(one.stem)):
        runs = [dict(np.load(one)) for one in sorted(folder.glob(f"{path.stem}_*.npz"))]
        here = mlirt.load(path)
        expected = [[np.array(value) for value in here.run(feeds).values()] for feeds in runs]
        with running_as(DARWIN):
            engine = mlirt.load(path.with_suffix(".darwin"), threads=2, spin_ms=0)
            found = [[np.array(value) for value in engine.run(feeds).values()] for feeds in (*runs, *runs)]
        is_same = all(
            np.array_equal(one, other, equal_nan=True)
            for some, others in zip(found, (*expected, *expected), strict=True)
            for one, other in zip(some, others, strict=True)
        )
        print(path.stem, "same bits" if is_same else "DIFFERS", flush=True)


__all__ = ["DARWIN", "WINDOWS", "ForeignSystem", "running_as"]

if __name__ == "__main__":
    main(Path(sys.argv[1]))
