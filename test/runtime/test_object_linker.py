"""Linking object code: damaged objects are refused before LLVM sees them, missing functions are named."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_plan import compile_ir, compiled_sections

from mlirt.errors import PlanError
from mlirt.runtime.elf_symbols import read_symbols
from mlirt.runtime.host_cpu import host_architecture
from mlirt.runtime.object_linker import LinkedCode

TWO = "define i64 @answer() {{ ret i64 {0} }}\ndefine weak i64 @shared() {{ ret i64 {0} }}"


def call(address: int) -> int:
    import ctypes

    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(address)())


def test_symbols_of_a_real_object() -> None:
    symbols = read_symbols(memoryview(compiled_sections()["reverse.o"]), "reverse.o", host_architecture())
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
        read_symbols(memoryview(data), "x.o", host_architecture())
