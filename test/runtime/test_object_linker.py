"""Linking object code: damaged objects are refused before LLVM sees them, missing functions are named."""

import platform
import random
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_plan import REVERSE, compile_ir, compiled_sections

from mlirt.errors import PlanError
from mlirt.runtime.elf_sections import read_object
from mlirt.runtime.elf_symbols import ElfSymbols, read_symbols
from mlirt.runtime.host_cpu import host_architecture
from mlirt.runtime.object_linker import LinkedCode

TWO = "define i64 @answer() {{ ret i64 {0} }}\ndefine weak i64 @shared() {{ ret i64 {0} }}"


def call(address: int) -> int:
    import ctypes

    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(address)())


def symbols_of(data: bytes, name: str = "x.o") -> ElfSymbols:
    return read_symbols(read_object(memoryview(data), name, host_architecture()))


def test_symbols_of_a_real_object() -> None:
    symbols = symbols_of(compiled_sections()["reverse.o"])
    assert symbols.strong == {"reverse"}
    assert symbols.undefined - {"_GLOBAL_OFFSET_TABLE_"} == {"cosf", "NRT_decref", "PyErr_Clear", "numba_gil_ensure"}


def test_objects_with_equal_names_are_kept_apart() -> None:
    objects = {str(i): memoryview(compile_ir(TWO.format(i))) for i in range(5)}
    code = LinkedCode(objects, [(name, "answer") for name in objects])
    assert [call(code.addresses[str(i), "answer"]) for i in range(5)] == list(range(5))


def test_a_function_that_is_nowhere_is_named() -> None:
    name = "no_such_function_anywhere"
    source = f"declare void @{name}()\ndefine void @f() {{\n call void @{name}()\n ret void\n}}"
    with pytest.raises(PlanError, match=r"needs functions that are not here: \['no_such_function_anywhere'\]"):
        LinkedCode({"f.o": memoryview(compile_ir(source))}, [("f.o", "f")])


def test_a_symbol_that_is_not_defined_is_named() -> None:
    with pytest.raises(PlanError, match=r"'scale.o': it does not define 'cosf'"):
        LinkedCode({"scale.o": memoryview(compiled_sections()["scale.o"])}, [("scale.o", "cosf")])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a 64-bit little-endian ELF file"),
        (b"\x7fELF\x02\x01" + bytes(100), "not a relocatable object file"),
        (b"MZ" + bytes(100), "not a 64-bit little-endian ELF file"),
    ],
)
def test_what_is_no_object_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        LinkedCode({"x.o": memoryview(data)}, [("x.o", "f")])


def test_another_processor_is_refused() -> None:
    data = bytearray(compiled_sections()["scale.o"])
    data[18:20] = (8).to_bytes(2, "little")
    with pytest.raises(PlanError, match="another kind of processor"):
        LinkedCode({"x.o": memoryview(data)}, [("x.o", "scale")])


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=8), st.integers(0, 3000))
def test_reading_symbols_survives_any_damage(changes: list[tuple[int, int]], length: int) -> None:
    data = bytearray(compiled_sections()["reverse.o"])[: max(length, 1)]
    for at, value in changes:
        data[at % len(data)] = value
    with suppress(PlanError):
        symbols_of(bytes(data))


def headers(data: bytes) -> tuple[int, list[tuple[int, ...]]]:
    """Where the section table of an object begins, and its rows."""
    table = struct.unpack_from("<Q", data, 40)[0]
    count = struct.unpack_from("<H", data, 60)[0]
    return table, [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]


def damaged(data: bytes, rng: random.Random) -> bytes:
    """The object with one to four fields of its section, symbol and relocation tables overwritten."""
    changed = bytearray(data)
    table, rows = headers(data)
    tables = [(table, 64 * len(rows), 4)] + [(row[4], row[5], 4) for row in rows if row[1] in (2, 3, 4) and row[5]]
    for _ in range(rng.randint(1, 4)):
        start, size, step = rng.choice(tables)
        at = start + rng.randrange(size // step) * step
        value = rng.choice([0, 1, 7, 255, 0xFFF1, 1 << 31, (1 << 32) - 1, rng.randrange(1 << 32), len(data)])
        struct.pack_into("<I", changed, at, value)
    return bytes(changed)


LINK_ALL = """
import pathlib, sys
from mlirt.errors import PlanError
from mlirt.runtime.object_linker import LinkedCode
from mlirt.runtime.systems.linux import LinuxSystem
LinuxSystem.loads_by_llvm = sys.argv[2] == "llvm"
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    print(path.name, end=" ", flush=True)
    try:
        LinkedCode({"x.o": memoryview(path.read_bytes())}, [])
        print("linked")
    except PlanError as error:
        print("refused", error)
"""


@pytest.mark.parametrize("loader", ["llvm", "ours"])
def test_linking_a_damaged_object_never_ends_the_process(loader: str, tmp_path: Path) -> None:
    rng = random.Random(0)
    codes = {section: compiled_sections()[section] for section in ("reverse.o", "main")}
    if loader == "ours":
        codes["reverse.o"] = compile_ir(REVERSE, "small")
    for section, code in codes.items():
        for i in range(150):
            (tmp_path / f"{section}.{i:03}").write_bytes(damaged(code, rng))
    command = [sys.executable, "-c", LINK_ALL, str(tmp_path), loader]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, (done.stdout[-300:], done.stderr[-2000:])
    assert len(done.stdout.splitlines()) == 300
    assert 50 < done.stdout.count("refused") < 300


CLEVER = """
define ptr @resolver() { ret ptr null }
@f = ifunc void (), ptr @resolver
"""
LOCAL_TO_A_THREAD = """
@t = thread_local global i64 1
define i64 @f() {
  %v = load i64, ptr @t
  ret i64 %v
}
"""


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (CLEVER, "a symbol is of a kind that kernels do not have"),
        (LOCAL_TO_A_THREAD, "is of a kind that kernels do not have"),
        ("@zeros = global [134217728 x i8] zeroinitializer", "asks for 134217728 bytes of zeros"),
    ],
    ids=["ifunc", "thread_local", "zeros"],
)
def test_what_no_kernel_has_is_refused(source: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        symbols_of(compile_ir(source))


CONSTANTS = """
define float @f(float %x) {
  %y = fmul float %x, 0x400CCCCCC0000000
  %z = fadd float %y, 0x3FD3333340000000
  ret float %z
}
"""


def relocations(data: bytes) -> list[tuple[int, int]]:
    """(where its row is, what it refers to) of each relocation of the code."""
    _, rows = headers(data)
    places = [at for row in rows if row[1] == 4 and rows[row[7]][2] & 4 for at in range(row[4], row[4] + row[5], 24)]
    return [(at, struct.unpack_from("<Q", data, at + 8)[0] >> 32) for at in places]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors have other relocations")
def test_relocations_are_where_the_compiler_left_room() -> None:
    data = compile_ir(CONSTANTS)
    symbols_of(data)
    first, second = relocations(data)[:2]
    place = struct.unpack_from("<Q", data, second[0])[0]
    for moved, message in [
        (struct.unpack_from("<Q", data, first[0])[0] - 4, "written over something else"),
        (place, "two relocations are written to one place"),
    ]:
        changed = bytearray(data)
        struct.pack_into("<Q", changed, first[0], moved)
        with pytest.raises(PlanError, match=message):
            symbols_of(bytes(changed))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors have other relocations")
def test_relocations_refer_to_what_is_in_memory() -> None:
    data = compile_ir(CONSTANTS)
    table, rows = headers(data)
    (_, symbol), symbols = relocations(data)[1], next(row for row in rows if row[1] == 2)
    row = symbols[4] + 24 * symbol
    nameless, elsewhere = bytearray(data), bytearray(data)
    struct.pack_into("<IB", nameless, row, rows[symbols[6]][5] - 1, 0)  # the zero at the end of the names; no section
    home = struct.unpack_from("<H", data, row + 6)[0]
    struct.pack_into("<Q", elsewhere, table + 64 * home + 8, 0x10)
    for changed in (nameless, elsewhere):
        with pytest.raises(PlanError, match="a relocation refers to no symbol"):
            symbols_of(bytes(changed))


LINK_BESIDE_A_HOLE = """
import ctypes, pathlib, sys
from mlirt.runtime.object_linker import LinkedCode
libc = ctypes.CDLL(None)
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_size_t, [ctypes.c_size_t] * 2 + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_size_t] * 2
PRIVATE_UNBACKED = 0x4022  # anonymous, and without swap space

def reserve(size):
    return libc.mmap(0, size, 0, PRIVATE_UNBACKED, -1, 0)

LinkedCode({"first.o": memoryview(pathlib.Path(sys.argv[1]).read_bytes())}, [])  # what is loaded once
hole, far = reserve(1 << 14), reserve(5 << 30)
assert hole > far
while reserve(1 << 12) > far:
    pass
libc.munmap(hole, int(sys.argv[2]))
code = LinkedCode({"x.o": memoryview(pathlib.Path(sys.argv[1]).read_bytes())}, [("x.o", "pick")])
print([ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.addresses["x.o", "pick"])(i) for i in range(4)])
"""
TABLE_AND_CALL = """
declare i64 @labs(i64)
@table = private unnamed_addr constant [4 x i64] [i64 -7, i64 5, i64 -3, i64 1]
define i64 @pick(i64 %i) {
  %at = getelementptr [4 x i64], ptr @table, i64 0, i64 %i
  %v = load i64, ptr %at
  %r = call i64 @labs(i64 %v)
  ret i64 %r
}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="numbers of Linux's mmap")
@pytest.mark.parametrize("hole", [0, 4096, 8192, 12288])
def test_code_and_constants_lie_together_wherever_room_is(tmp_path: Path, hole: int) -> None:
    """A hole that only some of the sections fit, gigabytes above the next free address: apart, the loader aborts."""
    path = tmp_path / "x.o"
    path.write_bytes(compile_ir(TABLE_AND_CALL, code_model="small"))
    command = [sys.executable, "-c", LINK_BESIDE_A_HOLE, str(path), str(hole)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "[7, 5, 3, 1]\n"), done.stderr[-2000:]
