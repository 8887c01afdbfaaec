"""Checks the relocations of an ELF object file: the places in its code that a linker fills with addresses."""

import struct
from collections.abc import Sequence
from itertools import pairwise

from mlirt.runtime.elf_sections import NOBITS, RELA, ElfObject

RELOCATION = struct.Struct("<QQq")
_MAX_OFFSET = 1 << 26
"""More than any addend of a real object, and little enough that sections that lie near each other stay in reach."""

_BYTES = {
    "x86_64": {1: 8, 2: 4, 4: 4, 9: 4, 24: 8, 25: 8, 27: 8, 29: 8, 41: 4, 42: 4},
    "aarch64": {257: 8, 260: 8, 261: 4, 263: 4, 264: 4, 265: 4, 266: 4, 267: 4, 268: 4, 269: 4}
    | {kind: 4 for kind in (275, 277, 278, 279, 280, 282, 283, 284, 285, 286, 299, 311, 312)},
}
"""How many bytes each kind of relocation fills, by the number that the processor's ABI gives it; others are refused."""
_INSTRUCTION_BYTES = {"x86_64": 1, "aarch64": 4}
"""What places of relocations in code are multiples of."""
_EMPTY_PLACES = {"x86_64"}
"""Where compilers leave zeros at the places, and LLVM's linker would add what stands there to the addend."""
_NEAR_ONLY = {"x86_64": {2}, "aarch64": {261, 275}}
"""What reaches 2 GiB or less without a detour: a function of another library may lie farther away."""


def check_relocations(elf: ElfObject, table: int, symbols: Sequence[bool | None]) -> None:
    """Raise PlanError where a relocation would write or point outside or over another, or is of a kind without use.

    `table` is the place of the symbol table among the sections; of each symbol None says that nothing may refer to it,
    else whether this object defines it.
    """
    sizes = _BYTES.get(elf.machine)
    near = _NEAR_ONLY.get(elf.machine, set[int]())
    for section in elf.sections:
        if section.kind != RELA:
            continue
        if section.link != table or section.info >= len(elf.sections) or elf.sections[section.info].kind == NOBITS:
            elf.refuse("a table of relocations belongs to no section")
        target = elf.sections[section.info]
        filled: list[tuple[int, int]] = []
        for place, reference, addend in section.rows(RELOCATION):
            symbol, kind = reference >> 32, reference & 0xFFFFFFFF
            if sizes is not None and kind not in sizes:
                elf.refuse(f"a relocation is of the kind {kind}, which kernels do not have")
            size = (sizes or {}).get(kind, 8)
            if place + size > len(target.body) or abs(addend) > _MAX_OFFSET:
                elf.refuse("a relocation lies outside of its section")
            if elf.machine in _EMPTY_PLACES and any(target.body[place : place + size]):
                elf.refuse("a relocation would be written over something else")
            if size == 4 and place % _INSTRUCTION_BYTES.get(elf.machine, 1):
                elf.refuse("a relocation lies amid an instruction")
            filled.append((place, place + size))
            if symbol >= len(symbols) or symbols[symbol] is None:
                elf.refuse("a relocation refers to no symbol")
            if kind in near and not symbols[symbol]:
                elf.refuse("a relocation reaches for a function that may lie too far away")
        filled.sort()
        if elf.machine in _EMPTY_PLACES and any(end > start for (_, end), (start, _) in pairwise(filled)):
            elf.refuse("two relocations are written to one place")
