"""Reads the symbol table of a 64-bit little-endian ELF object file: what it defines and what it needs.

Everything is bounds-checked, so a damaged object is refused here before LLVM, which would abort the process, sees it.
"""

import struct
from dataclasses import dataclass

from mlirt.errors import PlanError

MACHINES = {"x86_64": 62, "aarch64": 183}
_FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATABLE = 1
_SYMTAB, _NOBITS = 2, 8
_GLOBAL, _WEAK = 1, 2


@dataclass(frozen=True)
class ElfSymbols:
    """The names of an object's symbols: strong and weak definitions, and references to be resolved."""

    strong: frozenset[str]
    weak: frozenset[str]
    undefined: frozenset[str]


@dataclass(frozen=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int


def read_symbols(data: memoryview, name: str, machine: str) -> ElfSymbols:
    """The symbols of the relocatable object `data`, called `name` in errors; raise PlanError where it is damaged."""
    sections = _read_sections(data, name, machine)
    strong: set[str] = set()
    weak: set[str] = set()
    undefined: set[str] = set()
    for section in sections:
        if section.kind != _SYMTAB:
            continue
        if section.link >= len(sections):
            raise PlanError(f"damaged object code {name!r}: the symbol table has no names")
        strings = sections[section.link]
        text = bytes(data[strings.offset : strings.offset + strings.size])
        for at in range(section.offset, section.offset + section.size - _SYMBOL.size + 1, _SYMBOL.size):
            start, info, _, home, _, _ = _SYMBOL.unpack(data[at : at + _SYMBOL.size])
            if info >> 4 not in (_GLOBAL, _WEAK):
                continue
            end = text.find(b"\0", start)
            if end < 0:
                raise PlanError(f"damaged object code {name!r}: a symbol's name lies outside of the file")
            symbol = text[start:end].decode("utf-8", "replace")
            (undefined if home == 0 else strong if info >> 4 == _GLOBAL else weak).add(symbol)
    return ElfSymbols(frozenset(strong), frozenset(weak), frozenset(undefined))


def _read_sections(data: memoryview, name: str, machine: str) -> list[_Section]:
    if len(data) < _FILE_HEADER.size or bytes(data[:6]) != b"\x7fELF\x02\x01":
        raise PlanError(f"damaged object code {name!r}: not a 64-bit little-endian ELF file")
    header = _FILE_HEADER.unpack(data[: _FILE_HEADER.size])
    kind, code, table, entry_size, count = header[1], header[2], header[6], header[11], header[12]
    if kind != _RELOCATABLE:
        raise PlanError(f"damaged object code {name!r}: not a relocatable object file")
    if machine in MACHINES and code != MACHINES[machine]:
        raise PlanError(f"object code {name!r} is for another kind of processor than this one ({machine})")
    if entry_size != _SECTION.size or count == 0 or table + count * entry_size > len(data):
        raise PlanError(f"damaged object code {name!r}: the section table lies outside of the file")
    sections: list[_Section] = []
    for i in range(count):
        at = table + i * entry_size
        row = _SECTION.unpack(data[at : at + entry_size])
        section = _Section(kind=row[1], offset=row[4], size=row[5], link=row[6])
        if section.kind not in (0, _NOBITS) and section.offset + section.size > len(data):
            raise PlanError(f"damaged object code {name!r}: section {i} lies outside of the file")
        sections.append(section)
    return sections
