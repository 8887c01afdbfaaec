"""Links the object code of a plan to one block of bytes that runs wherever it lies, for any of the operating systems.

Code and constants lie one behind the other, in the order of the objects, and reach each other by their distance, so
nothing in them depends on where the block is. Whatever is not the plan's own (functions of the system and of the C
library) is called by a detour at the end of the block, which whoever loads it fills with an address, and a library in
C with a jump (runtime/c_library/).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from mlirt.errors import PlanError
from mlirt.runtime.elf_relocations import RELOCATION
from mlirt.runtime.elf_sections import RELA, SYMTAB, ElfObject, Section, text_at
from mlirt.runtime.elf_symbols import SYMBOL, ElfSymbols
from mlirt.runtime.error_path import is_error_path
from mlirt.runtime.instruction_places import moved
from mlirt.systems import WINDOWS

BLOCK_ALIGNMENT = 4096
"""What the address of the block has to be a multiple of: instructions of Arm processors reach whole pages."""
DETOUR_BYTES = 16
_DETOURS = {
    "x86_64": b"\xff\x25\0\0\0\0" + bytes(8) + b"\xcc\xcc",  # jmp *0(%rip), and the address behind it
    "aarch64": struct.pack("<II", 0x58000050, 0xD61F0200) + bytes(8),  # ldr x16, #8; br x16
}
_ADDRESS_AT = {"x86_64": 6, "aarch64": 8}
_NOTHING = {"x86_64": b"\x31\xc0\xc3", "aarch64": struct.pack("<II", 0xD2800000, 0xD65F03C0)}
"""A function that returns 0, in place of those by which compiled code reports errors."""
_PROBE = "__chkstk"
_PROBES = {
    # Keeps %rcx and %rax, and touches each page from the stack pointer before the call down to that less %rax.
    "x86_64": bytes.fromhex(
        "51 50 48 8d 4c 24 18 48 3d 00 10 00 00 76 11 48 81 e9 00 10 00 00 84 09 48 2d 00 10 00 00 eb e7"
        "48 29 c1 84 09 58 59 c3"
    ),
    # The same for 16 times x15; x16 and x17 are nobody's.
    "aarch64": bytes.fromhex(
        "f0ed7cd3 f1030091 1f0640f1 a9000054 310640d1 100640d1 3f0240f9 fbffff17 310210cb 3f0240f9 c0035fd6"
    ),
}
"""Windows commits a stack page by page: code with large frames calls this first, with their size in a register."""
_UNWINDING = (".eh_frame", ".rela.eh_frame")
_UNDEFINED, _GLOBAL, _WEAK = 0, 1, 2


@dataclass(frozen=True)
class CodeImage:
    """The block, where the symbols of each object lie in it, and the detours of the functions that it calls."""

    architecture: str
    code: bytes
    places: Mapping[tuple[str, str], int]
    imports: Mapping[str, int]

    def bound(self, addresses: Mapping[str, int]) -> bytes:
        """The block with the address of each function that it calls."""
        code = bytearray(self.code)
        for name, place in self.imports.items():
            struct.pack_into("<Q", code, place + _ADDRESS_AT[self.architecture], addresses[name])
        return bytes(code)


def make_image(
    objects: Mapping[str, ElfObject], tables: Mapping[str, ElfSymbols], architecture: str, system: str
) -> CodeImage:
    """Link objects, which were checked; raises PlanError for what code cannot have that lies anywhere."""
    if architecture not in _DETOURS:
        raise PlanError(f"code for {architecture[:40]} processors cannot be linked for {system}")
    return _Linking(objects, tables, architecture, system).image()


class _Linking:
    def __init__(
        self, objects: Mapping[str, ElfObject], tables: Mapping[str, ElfSymbols], architecture: str, system: str
    ) -> None:
        self._objects, self._tables = objects, tables
        self._architecture, self._system = architecture, system
        self._code = bytearray()
        self._starts: dict[tuple[str, int], int] = {}
        self._defined: dict[str, int] = {}
        self._imports: dict[str, int] = {}

    def image(self) -> CodeImage:
        places: dict[tuple[str, str], int] = {}
        for name, elf in self._objects.items():
            for number, section in enumerate(elf.sections):
                if section.is_loaded and section.name not in _UNWINDING:
                    self._starts[name, number] = self._append(section.body, section.alignment, section.size)
                    if section.is_written and section.size:
                        elf.refuse(
                            f"the section {section.name[:40]!r} would be written to, but code lies with constants"
                        )
        for name, elf in self._objects.items():
            for symbol, place, strength in self._definitions(name, elf):
                places[name, symbol] = place
                if strength == _GLOBAL or symbol not in self._defined:
                    self._defined[symbol] = place
        self._add_own_functions()
        for symbol in self._missing():
            self._imports[symbol] = self._append(_DETOURS[self._architecture], DETOUR_BYTES, DETOUR_BYTES)
        for name, elf in self._objects.items():
            for section in elf.sections:
                if section.kind == RELA and (name, section.info) in self._starts:
                    self._relocate(name, elf, section)
        return CodeImage(self._architecture, bytes(self._code), places, self._imports)

    def _append(self, body: memoryview | bytes, alignment: int, size: int) -> int:
        self._code += bytes(-len(self._code) % max(1, alignment))
        start = len(self._code)
        self._code += bytes(body) + bytes(size - len(body))
        return start

    def _definitions(self, name: str, elf: ElfObject) -> list[tuple[str, int, int]]:
        """The symbols of an object that others may name, their places and whether they are weak."""
        return [
            (symbol, start + row[4], row[1] >> 4)
            for symbol, row in _symbols(elf)
            if row[1] >> 4 in (_GLOBAL, _WEAK) and (start := self._starts.get((name, row[3]))) is not None
        ]

    def _missing(self) -> list[str]:
        wanted = {symbol for table in self._tables.values() for symbol in table.undefined}
        return sorted(wanted - self._defined.keys() - {"_GLOBAL_OFFSET_TABLE_"})

    def _add_own_functions(self) -> None:
        missing = self._missing()
        stubs = [symbol for symbol in missing if is_error_path(symbol)]
        if stubs:
            place = self._append(nothing := _NOTHING[self._architecture], 16, len(nothing))
            self._defined |= dict.fromkeys(stubs, place)
        if _PROBE in missing and self._system == WINDOWS:
            self._defined[_PROBE] = self._append(probe := _PROBES[self._architecture], 16, len(probe))

    def _relocate(self, name: str, elf: ElfObject, section: Section) -> None:
        start = self._starts[name, section.info]
        symbols = _symbols(elf)
        for offset, reference, addend in section.rows(RELOCATION):
            number: int = reference >> 32
            symbol, row = symbols[number]
            home = self._starts.get((name, row[3])) if row[3] != _UNDEFINED else None
            if home is not None:
                target = home + row[4]
            elif symbol in self._defined or symbol in self._imports:
                target = self._defined.get(symbol, self._imports.get(symbol, 0))
            else:
                elf.refuse(f"a relocation refers to {symbol[:80]!r}, which is not in memory")
            kind = reference & 0xFFFFFFFF
            if not moved(self._code, self._architecture, kind, start + offset, target, addend):
                elf.refuse(f"a relocation of the kind {kind} needs an address, but code may lie anywhere")


def _symbols(elf: ElfObject) -> list[tuple[str, tuple[int, ...]]]:
    """The rows of the symbol table with their names."""
    table = next((section for section in elf.sections if section.kind == SYMTAB), None)
    if table is None:
        return []
    names = elf.sections[table.link].body
    return [(text_at(names, row[0], elf.name), row) for row in table.rows(SYMBOL)]
