"""Code for other operating systems: what it calls, which registers it leaves alone, and that it computes the same."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from emulated_networks import networks
from foreign_systems import running_as
from fuzz_cases import Case

import mlirt
from mlirt.builder.device_choice import asking
from mlirt.builder.host import cpu_target
from mlirt.dialects.processor_files import processor_names, read_processor
from mlirt.errors import DeadlineError, InvalidInputError, PlanError
from mlirt.runtime.elf_sections import read_object
from mlirt.runtime.elf_symbols import read_symbols
from mlirt.runtime.host_cpu import host_architecture
from mlirt.runtime.llvm_binding import llvm
from mlirt.runtime.object_linker import LinkedCode
from mlirt.runtime.plan_file import Plan
from mlirt.systems import DARWIN, LINUX, SYSTEMS, WINDOWS, architecture_of, elf_triple, system_of, triple_of

capstone = pytest.importorskip("capstone")
NAMES = ("network residual convolutions", "network loop", "network functions")
OWN = {
    LINUX: {"sched_yield", "sem_init", "sem_wait", "sem_post", "clock_gettime"},
    DARWIN: {
        *("sched_yield", "clock_gettime_nsec_np", "dispatch_semaphore_create", "dispatch_semaphore_wait"),
        *("dispatch_semaphore_signal", "bzero", "__bzero"),
    },
    WINDOWS: {
        *("SwitchToThread", "CreateSemaphoreA", "WaitForSingleObject", "ReleaseSemaphore", "QueryPerformanceCounter"),
        *("QueryPerformanceFrequency", "__chkstk"),
    },
}
LIBRARY = {"memset", "memcpy", "memmove", "fmod", "fmodf", "powf", "pow", "sin", "cos", "tan"}
"""The C library's on every system."""
X86 = pytest.mark.skipif(host_architecture() != "x86_64", reason="the code is for x86-64")


@cache
def cases() -> Sequence[Case]:
    return [one for one in networks() if one.name in NAMES]


@cache
def plan(name: str, cpu: str, system: str) -> Plan:
    (case,) = [one for one in cases() if one.name == name]
    engine: Any = mlirt.compile(case.model, cpu=cpu, system=system)
    return engine.plan


def code_of(found: Plan) -> dict[str, bytes]:
    return {name: bytes(data) for name, data in found.sections.items() if name.endswith(".o")}


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", processor_names())
def test_every_processor_has_a_triple_for_every_system(name: str, system: str) -> None:
    triple = read_processor(name).triple(system)
    assert system_of(triple) == system
    assert architecture_of(triple) == read_processor(name).architecture
    assert elf_triple(triple) == triple


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("arm64-apple-darwin23.1.0", "arm64-apple-macosx11.0.0-elf"),
        ("x86_64-apple-darwin22", "x86_64-apple-macosx11.0.0-elf"),
        ("x86_64-pc-windows-msvc", "x86_64-pc-windows-msvc-elf"),
        ("aarch64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"),
        ("x86_64-pc-linux-musl", "x86_64-pc-linux-musl"),
    ],
)
def test_objects_are_elf_whatever_the_system_uses(given: str, expected: str) -> None:
    assert elf_triple(given) == expected


def test_systems_without_code_are_listed() -> None:
    with pytest.raises(InvalidInputError, match="expected one of host, linux, darwin, windows"):
        mlirt.compile(cases()[0].model, system="plan9")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("cpu", "system"),
    [
        ("x86-64-v2", LINUX),
        ("x86-64-v2", DARWIN),
        ("x86-64-v2", WINDOWS),
        ("apple-m1", DARWIN),
        ("cortex-a76", WINDOWS),
    ],
)
def test_code_calls_the_functions_of_its_system_and_no_others(name: str, cpu: str, system: str) -> None:
    called: set[str] = set()
    for section, data in code_of(plan(name, cpu, system)).items():
        called |= read_symbols(read_object(memoryview(data), section, read_processor(cpu).architecture)).undefined
    assert called - LIBRARY <= OWN[system]
    assert called & OWN[system] - {"memset"}


def uses_of_register_18(found: Plan) -> int:
    decoder = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
    decoder.skipdata = True  # tables of jumps
    uses = 0
    for name, data in code_of(found).items():
        for section in read_object(memoryview(data), name, "aarch64").sections:
            if section.name.startswith(".text"):
                uses += sum(
                    bool(re.search(r"\b[xw]18\b", one[3])) for one in decoder.disasm_lite(bytes(section.body), 0)
                )
    return uses


@pytest.mark.parametrize(("cpu", "system", "spared"), [
    ("apple-m1", DARWIN, True), ("cortex-a76", WINDOWS, True), ("cortex-a76", LINUX, False),
])  # fmt: skip
def test_register_18_is_the_systems(cpu: str, system: str, spared: bool) -> None:
    """On macOS and Windows; Linux's code does use it, which shows that it would be found."""
    assert (sum(uses_of_register_18(plan(name, cpu, system)) for name in NAMES) == 0) == spared


@X86
@pytest.mark.parametrize("system", [DARWIN, WINDOWS])
def test_plans_of_another_system_are_refused(system: str) -> None:
    with pytest.raises(PlanError, match=f"the operating system {system}, this is linux"):
        mlirt.load(plan(NAMES[0], "x86-64-v2", system).to_bytes())


@X86
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("system", [DARWIN, WINDOWS])
def test_the_same_bits_as_under_linux(name: str, system: str) -> None:
    """Functions that stand for the other system's are called as its code calls: three threads sleep and wake."""
    (case,) = [one for one in cases() if one.name == name]
    here = mlirt.load(plan(name, "x86-64-v2", LINUX).to_bytes())
    expected = [{key: np.array(value) for key, value in here.run(feeds).items()} for feeds in case.runs]
    with running_as(system) as there:
        engine = mlirt.load(plan(name, "x86-64-v2", system).to_bytes(), threads=3, spin_ms=0)
        for _ in range(5):
            for feeds, right in zip(case.runs, expected, strict=True):
                for key, value in engine.run(feeds).items():
                    np.testing.assert_array_equal(value, right[key])
        assert {*there.asked} >= OWN[system] - {"bzero", "__bzero", "__chkstk"}


@X86
def test_one_plan_for_all_systems() -> None:
    """Each takes its own part; weights are there once."""
    (case,) = [one for one in cases() if one.name == NAMES[0]]
    engine: Any = mlirt.compile(case.model, cpu="x86-64-v2", system="linux,darwin,windows")
    data = engine.plan.to_bytes()
    assert len(data) < 2 * len(plan(case.name, "x86-64-v2", LINUX).to_bytes())
    here: Any = mlirt.load(data)
    assert here.machines[0] == "x86-64-v2 linux"
    assert {*here.machines} == {f"x86-64-v2 {system}" for system in SYSTEMS}
    (expected,) = here.run(case.runs[0]).values()
    for system in (DARWIN, WINDOWS):
        with running_as(system):
            there: Any = mlirt.load(data)
            assert there.machines[0] == f"x86-64-v2 {system}"
            (found,) = there.run(case.runs[0]).values()
            np.testing.assert_array_equal(found, expected)


def test_systems_alone_are_those_of_this_processor() -> None:
    engine: Any = mlirt.compile(cases()[1].model, system="linux,windows")
    assert engine.machines == ("host linux", "host windows")
    with pytest.raises(InvalidInputError, match="for several machines can have no debug tensors"):
        mlirt.compile(cases()[1].model, system="linux,windows", refittable=True)


def test_the_matrix_unit_is_used_under_linux_alone() -> None:
    special: dict[str, frozenset[str]] = {}
    for system in SYSTEMS:
        with asking(None, "sapphirerapids", system):
            special[system] = cpu_target().special
    assert special[LINUX] - special[WINDOWS] == {"amx-int8", "amx-tile"}
    assert special[WINDOWS] == special[DARWIN] >= {"avx512vnni"}


@X86
@pytest.mark.parametrize("system", [DARWIN, WINDOWS])
def test_deadlines_are_those_of_its_clock(system: str) -> None:
    (case,) = [one for one in cases() if one.name == "network loop"]
    with running_as(system):
        engine = mlirt.load(plan(case.name, "x86-64-v2", system).to_bytes(), threads=1)
        engine.run(case.runs[0], timeout=60)
        with pytest.raises(DeadlineError):
            engine.run(case.runs[0], timeout=1e-7)


_LARGE_FRAME = """
define i64 @large(i64 %count) {
  %room = alloca [100000 x i8]
  call void @llvm.memset.p0.i64(ptr %room, i8 7, i64 100000, i1 true)
  %at = getelementptr i8, ptr %room, i64 %count
  %byte = load volatile i8, ptr %at
  %wide = zext i8 %byte to i64
  ret i64 %wide
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


@X86
def test_large_frames_touch_the_pages_of_a_stack() -> None:
    triple = triple_of("x86_64", WINDOWS)
    module = llvm().parse_assembly(_LARGE_FRAME)
    module.triple = triple
    code = llvm().Target.from_triple(triple).create_target_machine(reloc="pic", codemodel="small").emit_object(module)
    assert "__chkstk" in read_symbols(read_object(memoryview(code), "x", "x86_64")).undefined
    with running_as(WINDOWS) as there:
        linked = LinkedCode({"x": memoryview(code)}, [("x", "large")])
        assert "__chkstk" not in there.asked
        found = there.entered(linked.addresses["x", "large"], 1)
        assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(found)(99_999) == 7
