"""Objects that are linked to one block by ourselves: the same results as by LLVM's loader, and what is refused."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np
import pytest
from tiny_plan import REVERSE, SCALE, Parts, compile_ir, tiny_parts

import mlirt
from mlirt.builder.spmd_main import main_object
from mlirt.errors import PlanError
from mlirt.runtime.code_image import BLOCK_ALIGNMENT, DETOUR_BYTES, CodeImage, make_image
from mlirt.runtime.elf_sections import read_object
from mlirt.runtime.elf_symbols import read_symbols
from mlirt.runtime.host_cpu import host_architecture
from mlirt.runtime.instruction_places import moved
from mlirt.runtime.plan_file import plan_bytes
from mlirt.runtime.systems.linux import LinuxSystem
from mlirt.systems import DARWIN, LINUX, WINDOWS, triple_of

_CALLS = """
declare i32 @abs(i32)
declare i64 @labs(i64)
define internal i64 @inner(i64 %x) noinline {
  %r = call i64 @labs(i64 %x)
  ret i64 %r
}
define i64 @outer(i64 %x) {
  %r = call i64 @inner(i64 %x)
  %t = trunc i64 %x to i32
  %s = call i32 @abs(i32 %t)
  %w = sext i32 %s to i64
  %sum = add i64 %r, %w
  ret i64 %sum
}
"""
_WRITTEN = """
@count = internal global i64 7
define i64 @next() {
  %old = load i64, ptr @count
  %new = add i64 %old, 1
  store i64 %new, ptr @count
  ret i64 %old
}
"""


def small_parts() -> Parts:
    """As kernels are compiled: what they reach is near."""
    parts = tiny_parts()
    parts.sections |= {"scale.o": compile_ir(SCALE, "small"), "reverse.o": compile_ir(REVERSE, "small")}
    return parts


def data_of(parts: Parts) -> bytes:
    return plan_bytes(parts.manifest, parts.sections, parts.weights)


def image_of(*codes: bytes, architecture: str = "", system: str = LINUX) -> CodeImage:
    machine = architecture or host_architecture()
    objects = {f"o{i}": read_object(memoryview(code), f"o{i}", machine) for i, code in enumerate(codes)}
    return make_image(objects, {name: read_symbols(elf) for name, elf in objects.items()}, machine, system)


def test_functions_of_the_process_are_called() -> None:
    system = LinuxSystem()
    image = image_of(compile_ir(_CALLS, "small"))
    assert sorted(image.imports) == ["abs", "labs"]
    memory = system.executable(image.bound({name: system.function(name) for name in image.imports}))
    assert memory.address % BLOCK_ALIGNMENT == 0
    outer = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(memory.address + image.places["o0", "outer"])
    assert outer(-21) == 42
    assert system.function("there_is_no_such_function") == 0


def test_a_plan_has_the_same_results_as_by_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = data_of(small_parts())
    feeds = {"x": np.linspace(-3, 3, 44, dtype=np.float32).reshape(11, 4)}
    expected = {name: np.array(value) for name, value in mlirt.load(plan).run(feeds).items()}
    monkeypatch.setattr(LinuxSystem, "loads_by_llvm", False)
    found = mlirt.load(plan, threads=2).run(feeds)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


def test_a_function_that_is_nowhere_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LinuxSystem, "loads_by_llvm", False)
    parts = small_parts()
    parts.sections["reverse.o"] = parts.sections["reverse.o"].replace(b"\0cosf\0", b"\0cozf\0")
    with pytest.raises(PlanError, match=r"needs functions that are not here: \['cozf'\]"):
        mlirt.load(data_of(parts))


def test_what_would_be_written_to_is_refused() -> None:
    with pytest.raises(PlanError, match="would be written to, but code lies with constants"):
        image_of(compile_ir(_WRITTEN, "small"))


@pytest.mark.parametrize(
    ("architecture", "system"),
    [
        ("x86_64", LINUX),
        ("aarch64", LINUX),
        ("x86_64", WINDOWS),
        ("aarch64", WINDOWS),
        ("x86_64", DARWIN),
        ("aarch64", DARWIN),
    ],
)
def test_the_main_object_of_every_system_is_linked(architecture: str, system: str) -> None:
    image = image_of(main_object(triple_of(architecture, system)), architecture=architecture, system=system)
    assert len(image.code) % DETOUR_BYTES == 0
    addresses = {name: 0x1122334455667788 + i for i, name in enumerate(image.imports)}
    bound = image.bound(addresses)
    for name, place in image.imports.items():
        assert struct.pack("<Q", addresses[name]) in bound[place : place + DETOUR_BYTES]
    assert bound[: min(image.imports.values())] == image.code[: min(image.imports.values())]


def arm(word: int, kind: int, place: int, target: int) -> int:
    code = bytearray(place + 8)
    struct.pack_into("<I", code, place, word)
    assert moved(code, "aarch64", kind, place, target, 0)
    return int(struct.unpack_from("<I", code, place)[0])


@pytest.mark.parametrize(
    ("word", "kind", "place", "target", "expected"),
    [
        (0x94000000, 283, 0x100, 0x40, 0x97FFFFD0),  # bl, backwards
        (0x14000000, 282, 0x40, 0x100, 0x14000030),  # b
        (0x90000008, 275, 0x1008, 0x5004, 0x90000028),  # adrp x8, four pages on
        (0x90000008, 275, 0x5008, 0x1004, 0x90FFFFE8),  # adrp x8, four pages back
        (0x91000108, 277, 0, 0x5ABC, 0x912AF108),  # add x8, x8, #0xabc
        (0x3DC00100, 299, 0, 0x5AB0, 0x3DC2AD00),  # ldr q0, [x8, #0xab0]
        (0xF9400108, 312, 0, 0x5AB8, 0x912AE108),  # ldr x8, [x8, :got_lo12:] is add
    ],
)
def test_instructions_of_arm(word: int, kind: int, place: int, target: int, expected: int) -> None:
    found = arm(word, kind, place, target)
    capstone: Any = pytest.importorskip("capstone")
    decoder = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
    texts = [next(decoder.disasm(struct.pack("<I", one), place)).op_str for one in (found, expected)]
    assert texts[0] == texts[1]


def test_places_that_are_not_multiples_are_refused() -> None:
    code = bytearray(struct.pack("<I", 0xF9400108))
    assert not moved(code, "aarch64", 286, 0, 0x5AB4, 0)
    assert not moved(code, "aarch64", 257, 0, 0, 0)
    assert not moved(bytearray(16), "x86_64", 1, 4, 0, 0)


def test_addresses_by_a_table_are_distances() -> None:
    load, call = bytearray(b"\x48\x8b\x05\0\0\0\0"), bytearray(b"\xff\x15\0\0\0\0")
    assert moved(load, "x86_64", 42, 3, 0x103, -4)
    assert load == b"\x48\x8d\x05\xfc\0\0\0"
    assert moved(call, "x86_64", 41, 2, 0x102, -4)
    assert call == b"\x67\xe8\xfc\0\0\0"
    assert not moved(bytearray(b"\x48\x03\x05\0\0\0\0"), "x86_64", 42, 3, 0x103, -4)
