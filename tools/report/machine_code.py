"""The machine code of a plan's kernels as text: capstone reads that for CPUs, nvdisasm that for GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from mlirt.errors import MissingPackageError
from mlirt.runtime.elf_relocations import RELOCATION
from mlirt.runtime.elf_sections import PROGBITS, RELA, ElfObject, read_object, text_at
from mlirt.runtime.elf_symbols import SYMBOL, read_symbols
from mlirt.systems import architecture_of

if TYPE_CHECKING:
    from mlirt.runtime.plan_file import Plan

PACKAGE = "capstone"
_PAGE_LINES = 24_000
_MIN_LINES, _MAX_LINES = 40, 400
_ELF = b"\x7fELF"
_ADDRESS_DIGITS = 4
_SASS_LINE = re.compile(r"^\s*(?:/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;|(\.L_\w+:))", re.MULTILINE)


@dataclass(frozen=True)
class MachineCode:
    """What there is to show of a plan's machine code: texts by kernel, or why there is none."""

    texts: Mapping[str, str]
    missing: str = ""


def machine_code(plan: Plan, lines: int | None = None) -> MachineCode:
    """The first instructions of each kernel, at most `lines`; by itself as many as let a page stay small.

    Raises `PlanError` for object code that is damaged, `CompileError` where nvdisasm refuses a kernel.
    """
    kernels = plan.manifest.kernels
    if lines is None:
        lines = min(max(_PAGE_LINES // max(len(kernels), 1), _MIN_LINES), _MAX_LINES)
    try:
        texts = _cpu_texts(plan, lines) if plan.manifest.target.kind == "cpu" else _cuda_texts(plan, lines)
    except MissingPackageError as error:
        return MachineCode({}, str(error))
    return MachineCode(texts)


def _cpu_texts(plan: Plan, lines: int) -> dict[str, str]:
    machine = architecture_of(plan.manifest.target.triple)
    reader = _capstone(machine)
    codes = _codes(plan)
    return {name: _shortened(_instructions(name, code, machine, reader), lines) for name, code in codes.items()}


def _cuda_texts(plan: Plan, lines: int) -> dict[str, str]:
    from mlirt.builder.machine_code.disassembler import disassemble, find_nvdisasm

    find_nvdisasm()
    codes = _codes(plan)
    return {
        name: _shortened((found[3] or f"{found[1]}  {found[2]}" for found in _SASS_LINE.finditer(text)), lines)
        for name, text in zip(codes, disassemble(list(codes.values())), strict=True)
    }


def _codes(plan: Plan) -> dict[str, bytes]:
    """The code of each kernel for its newest architecture; kernels of a library have none."""
    found: dict[str, bytes] = {}
    for kernel in plan.manifest.kernels:
        if kernel.objects:
            code = bytes(memoryview(plan.sections[kernel.objects[max(kernel.objects, key=_generation)]]))
            if code.startswith(_ELF):
                found[kernel.name] = code
    return found


def _generation(architecture: str) -> int:
    """90 of sm_90a; 0 of a CPU's code, which has no name."""
    digits = re.sub(r"\D", "", architecture)
    return int(digits) if digits else 0


def _capstone(machine: str) -> Any:
    try:
        import capstone  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        text = f"machine code is read by capstone, which is not installed: `pip install {PACKAGE}`"
        raise MissingPackageError(text, name=PACKAGE) from error
    if machine == "aarch64":
        return capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
    return capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)


def _instructions(name: str, code: bytes, machine: str, reader: Any) -> Iterator[str]:
    """Addresses, instructions, and the names that the linker fills in behind those that refer to them."""
    elf = read_object(memoryview(code), name, machine)
    read_symbols(elf)  # checks what refers to them
    for number, section in enumerate(elf.sections):
        if section.kind != PROGBITS or not section.name.startswith(".text") or not section.size:
            continue
        names = _references(elf, number)
        for address, size, mnemonic, operands in reader.disasm_lite(bytes(section.body), 0):
            known = [names[at] for at in range(address, address + size) if at in names]
            comment = f"  ; {', '.join(known)}" if known else ""
            yield f"{address:0{_ADDRESS_DIGITS}x}  {mnemonic:<14} {operands}".rstrip() + comment


def _references(elf: ElfObject, number: int) -> dict[int, str]:
    """What the bytes of a section refer to, by their place."""
    found: dict[int, str] = {}
    for section in elf.sections:
        if section.kind != RELA or section.info != number:
            continue
        table = elf.sections[section.link]
        symbols: list[tuple[int, ...]] = list(table.rows(SYMBOL))
        for place, info, _ in section.rows(RELOCATION):
            found[place] = _name(elf, table.link, symbols[int(info) >> 32])
    return found


def _name(elf: ElfObject, strings: int, symbol: tuple[int, ...]) -> str:
    at, section = symbol[0], symbol[3]
    if at:
        return text_at(elf.sections[strings].body, at, elf.name)
    return elf.sections[section].name if section < len(elf.sections) else "?"


def _shortened(instructions: Iterator[str], lines: int) -> str:
    shown = list(islice(instructions, lines))
    left = sum(1 for _ in instructions)
    return "\n".join([*shown, *([f".. and {left:,} more"] if left else [])])
