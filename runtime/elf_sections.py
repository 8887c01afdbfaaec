"""Reads the section table of a 64-bit little-endian ELF object file, and refuses what no compiled kernel has.

LLVM's loader believes what an object says of itself and aborts the process over a lie. So whatever it will look at is
checked here before, against a list of what is allowed rather than of what is known to be bad.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from mlirt.errors import PlanError

MACHINES = {"x86_64": 62, "aarch64": 183}
PROGBITS, SYMTAB, STRTAB, RELA, NOBITS = 1, 2, 3, 4, 8
_NULL, _NOTE, _INIT_ARRAY, _FINI_ARRAY, _ADDRESS_TABLE, _UNWIND = 0, 7, 14, 15, 0x6FFF4C03, 0x70000001
_KINDS = {
    _NULL, PROGBITS, SYMTAB, STRTAB, RELA, NOBITS, _NOTE, _INIT_ARRAY, _FINI_ARRAY, _ADDRESS_TABLE, _UNWIND,
}  # fmt: skip
_FLAGS = 0x1 | 0x2 | 0x4 | 0x10 | 0x20 | 0x40 | 0x80 | 0x10000000 | 0x80000000
"""Written, in memory, executed, merged, strings, and how sections refer to each other: no TLS, nothing compressed."""
_WRITTEN, _LOADED = 0x1, 0x2
_MAX_ALIGNMENT = 4096
_MAX_BYTES_OF_ZEROS = 1 << 26
_FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_TABLE_AT, _TABLE_AT_BYTE = struct.Struct("<Q"), 40
_COUNT, _COUNT_AT_BYTE = struct.Struct("<H"), 60
_MAX_SECTIONS = 0xFEFF  # one less than the format has room for
_WORD = 8
_RELOCATABLE = 1
_ROW_BYTES = {SYMTAB: 24, RELA: 24}


@dataclass(frozen=True)
class Section:
    """A row of the section table, with the section's name looked up and its bytes at hand (none of a NOBITS one)."""

    name: str
    kind: int
    body: memoryview
    size: int
    link: int
    info: int
    header_at: int
    is_loaded: bool
    """Whether it takes memory when the object is linked."""
    is_written: bool
    alignment: int

    def rows(self, form: struct.Struct) -> Iterator[tuple[Any, ...]]:
        """The section as a table."""
        return form.iter_unpack(self.body)


@dataclass(frozen=True)
class ElfObject:
    """The sections of the object that errors call `name`."""

    name: str
    machine: str
    data: memoryview
    sections: tuple[Section, ...]

    def refuse(self, why: str) -> NoReturn:
        """Raise the `PlanError` for this object."""
        raise _damaged(self.name, why)

    def for_loading(self) -> bytes:
        """The object as LLVM's loader is given it.

        It has no tables for stack unwinding: kernels throw nothing, and what is registered gets parsed. It has a
        writable section of zeros with a word for each relocation: the loader reserves memory for an object in one
        range, but does not count the addresses of functions elsewhere that it keeps beside the code.
        """
        changed = bytearray(self.data)
        for section in self.sections:
            if section.name in (".eh_frame", ".rela.eh_frame"):
                changed[section.header_at + 4 : section.header_at + 8] = bytes(4)
        table = b"".join([changed[one.header_at : one.header_at + _SECTION.size] for one in self.sections])
        words = 1 + sum(one.body.nbytes // _ROW_BYTES[RELA] for one in self.sections if one.kind == RELA)
        room = _SECTION.pack(0, NOBITS, _WRITTEN | _LOADED, 0, 0, _WORD * words, 0, 0, _WORD, 0)
        _TABLE_AT.pack_into(changed, _TABLE_AT_BYTE, len(changed))
        _COUNT.pack_into(changed, _COUNT_AT_BYTE, len(self.sections) + 1)
        return bytes(changed) + table + room


def read_object(data: memoryview, name: str, machine: str) -> ElfObject:
    """The checked sections of `data`, for a processor such as "x86_64"; raise PlanError where one is damaged."""
    if len(data) < _FILE_HEADER.size or bytes(data[:6]) != b"\x7fELF\x02\x01":
        raise _damaged(name, "not a 64-bit little-endian ELF file")
    header: tuple[int, ...] = _FILE_HEADER.unpack(data[: _FILE_HEADER.size])
    kind, code, table, row_bytes, count, names_at = header[1], header[2], header[6], header[11], header[12], header[13]
    if kind != _RELOCATABLE:
        raise _damaged(name, "not a relocatable object file")
    if machine in MACHINES and code != MACHINES[machine]:
        raise PlanError(f"object code {name!r} is for another kind of processor than this one ({machine})")
    if row_bytes != _SECTION.size or not 0 < count < _MAX_SECTIONS or table + count * row_bytes > len(data):
        raise _damaged(name, "the section table lies outside of the file")
    headers = [table + i * row_bytes for i in range(count)]
    rows: list[tuple[int, ...]] = [_SECTION.unpack(data[at : at + row_bytes]) for at in headers]
    for i, row in enumerate(rows):
        _check(row, f"section {i}", name, len(data))
    if names_at >= count or rows[names_at][1] != STRTAB:
        raise _damaged(name, "the sections have no names")
    names = _body(data, STRTAB, rows[names_at][4], rows[names_at][5])
    sections = [
        Section(
            name=text_at(names, row[0], name),
            kind=row[1],
            body=_body(data, row[1], row[4], row[5]),
            size=row[5],
            link=row[6],
            info=row[7],
            header_at=at,
            is_loaded=bool(row[2] & _LOADED),
            is_written=bool(row[2] & _WRITTEN),
            alignment=row[8],
        )
        for row, at in zip(rows, headers, strict=True)
    ]
    return ElfObject(name, machine, data, tuple(sections))


def _check(row: tuple[int, ...], which: str, name: str, file_bytes: int) -> None:
    _, kind, flags, _, offset, size, _, _, alignment, row_bytes = row
    if kind not in _KINDS or flags & ~_FLAGS or (kind == _NULL and flags & _LOADED):
        raise _damaged(name, f"{which} is of a kind that kernels do not have")
    if alignment & (alignment - 1) or alignment > _MAX_ALIGNMENT:
        raise _damaged(name, f"{which} has the alignment {alignment}")
    if kind == NOBITS and size > _MAX_BYTES_OF_ZEROS:
        raise _damaged(name, f"{which} asks for {size} bytes of zeros")
    if kind not in (_NULL, NOBITS) and offset + size > file_bytes:
        raise _damaged(name, f"{which} lies outside of the file")
    if kind in _ROW_BYTES and (row_bytes != _ROW_BYTES[kind] or size % row_bytes):
        raise _damaged(name, f"{which} is a table with rows of {row_bytes} bytes")


def _body(data: memoryview, kind: int, offset: int, size: int) -> memoryview:
    return data[:0] if kind in (_NULL, NOBITS) else data[offset : offset + size]


def text_at(strings: memoryview, start: int, name: str) -> str:
    """The text that begins at `start` in a table of strings, each of which ends with a zero."""
    if start >= len(strings) or strings[-1]:
        raise _damaged(name, "a name lies outside of the file")
    return bytes(strings[start:]).split(b"\0", 1)[0].decode("utf-8", "replace")


def _damaged(name: str, why: str) -> PlanError:
    return PlanError(f"damaged object code {name!r}: {why}")
