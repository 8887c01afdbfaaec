"""Reads the symbol table of an ELF object file: what it defines and what it needs."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from mlirt.errors import PlanError
from mlirt.runtime.elf_relocations import check_relocations
from mlirt.runtime.elf_sections import STRTAB, SYMTAB, ElfObject, read_object, text_at

SYMBOL = struct.Struct("<IBBHQQ")
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1
_LOCAL, _GLOBAL, _WEAK = 0, 1, 2
_SECTION_SYMBOL, _FILE = 3, 4
_KINDS = {0, 1, 2, _SECTION_SYMBOL, _FILE}
"""None said, data, function, section, file: no thread-local data, and no function that is called to find another."""


@dataclass(frozen=True)
class ElfSymbols:
    """The names of an object's symbols: strong and weak definitions, and references to be resolved."""

    strong: frozenset[str]
    weak: frozenset[str]
    undefined: frozenset[str]


def read_symbols(elf: ElfObject) -> ElfSymbols:
    """The symbols of an object; raise PlanError where one is damaged, or a relocation that refers to them."""
    tables = [i for i, section in enumerate(elf.sections) if section.kind == SYMTAB]
    if len(tables) > 1:
        elf.refuse("there is more than one symbol table")
    found: dict[int, set[str]] = {_GLOBAL: set(), _WEAK: set()}
    undefined: set[str] = set()
    rows = list(elf.sections[tables[0]].rows(SYMBOL)) if tables else []
    names = [_name(row, elf, tables[0]) for row in rows]
    for row, symbol in zip(rows, names, strict=True):
        _check(row, elf)
        if row[1] >> 4 != _LOCAL:
            (undefined if row[3] == _UNDEFINED else found[row[1] >> 4]).add(symbol)
    known = [_can_be_named(row, name, elf) for row, name in zip(rows, names, strict=True)]
    check_relocations(elf, tables[0] if tables else -1, known)
    return ElfSymbols(frozenset(found[_GLOBAL]), frozenset(found[_WEAK]), frozenset(undefined))


def defines(code: bytes, symbol: str, machine: str) -> bool:
    """Whether this is an object for a processor such as "x86_64" that a linker can take, with that symbol."""
    try:
        found = read_symbols(read_object(memoryview(code), symbol, machine))
    except PlanError:
        return False
    return symbol in found.strong or symbol in found.weak


def _check(row: Sequence[int], elf: ElfObject) -> None:
    _, info, _, home, value, size = row
    if info >> 4 not in (_LOCAL, _GLOBAL, _WEAK) or info & 15 not in _KINDS:
        elf.refuse("a symbol is of a kind that kernels do not have")
    if home == _UNDEFINED or (home == _ABSOLUTE and info & 15 == _FILE):
        return
    if home >= len(elf.sections) or value + size > elf.sections[home].size:
        elf.refuse("a symbol lies outside of its section")


def _name(row: Sequence[int], elf: ElfObject, table: int) -> str:
    home = elf.sections[table].link
    if home >= len(elf.sections) or elf.sections[home].kind != STRTAB:
        elf.refuse("the symbol table has no names")
    return text_at(elf.sections[home].body, row[0], elf.name)


def _can_be_named(row: Sequence[int], name: str, elf: ElfObject) -> bool | None:
    """Whether a relocation may refer to the symbol: None if not, else whether this object defines it.

    What has no name is a section, and what is defined lies in memory: the linker takes others to be at address 0.
    """
    _, info, _, home, _, _ = row
    if info & 15 == _FILE or not any(row) or (not name and info & 15 != _SECTION_SYMBOL):
        return None
    if home == _UNDEFINED:
        return False
    return True if elf.sections[home].is_loaded else None
