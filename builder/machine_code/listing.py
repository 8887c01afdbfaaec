"""The text that nvdisasm prints of a cubin, as instructions and the places that branches go to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_SECTION = re.compile(r"^//-+ \.text\.(\S+)")
_LABEL = re.compile(r"^([.$\w]+):$")
_COMMENT = re.compile(r"/\*.*?\*/")
_INSTRUCTION = re.compile(r"^(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;?$")
_PLACE = re.compile(r"`\(([^)]+)\)")
_TABLE = re.compile(r'\(\*"BRANCH_TARGETS ([^"]*)"\*\)')


@dataclass(frozen=True)
class Instruction:
    """One instruction; `predicate` is `P0` or `!P0` where it is executed on a condition, else empty."""

    number: int
    function: str
    predicate: str
    opcode: str
    operands: str

    @cached_property
    def name(self) -> str:
        """The opcode without what follows its first point."""
        return self.opcode.partition(".")[0]

    @cached_property
    def places(self) -> tuple[str, ...]:
        """The labels that it names."""
        table = _TABLE.search(self.operands)
        return tuple(table[1].split(",")) if table else tuple(_PLACE.findall(self.operands))

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The operands one by one."""
        return tuple(part.strip() for part in self.operands.split(",")) if self.operands else ()

    def __str__(self) -> str:
        condition = f"@{self.predicate} " if self.predicate else ""
        return f"{condition}{self.opcode} {self.operands}".strip()


@dataclass(frozen=True)
class Listing:
    """The instructions of all functions of a cubin one after the other, and the numbers of those behind labels."""

    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    kernels: dict[str, int]
    """The first instruction of each function that may be launched."""

    @cached_property
    def targets(self) -> frozenset[int]:
        """The numbers of instructions behind labels."""
        return frozenset(self.labels.values())

    @cached_property
    def joins(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """Where the threads that part at BSSY meet again, by the function and the barrier's register."""
        found = dict[tuple[str, str], tuple[str, ...]]()
        for one in self.instructions:
            if one.name == "BSSY":
                key = one.function, one.parts[0]
                found[key] = (*found.get(key, ()), *(place for place in one.places if place in self.labels))
        return found


def parse_listing(text: str) -> Listing:
    """The listing of `nvdisasm -c`, or of instructions written by hand behind a line `//--- .text.name`."""
    instructions: list[Instruction] = []
    labels, starts, called = dict[str, int](), dict[str, int](), set[str]()
    function = ""
    for raw in text.splitlines():
        if section := _SECTION.match(raw):
            function = section[1]
            starts[function] = len(instructions)
            continue
        line = _COMMENT.sub("", raw).strip()
        if not function or not line or line.startswith((".section", ".align", ".global", ".type", ".size", ".other")):
            continue
        if label := _LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif line.endswith(";") or _TABLE.search(line):
            found = _INSTRUCTION.match(line)
            if found is None:
                raise ValueError(f"nvdisasm prints a line that is no instruction: {line!r}")
            predicate = "" if found[1] == "PT" else (found[1] or "")
            instruction = Instruction(len(instructions), function, predicate, found[2], found[3])
            if instruction.name == "CALL":
                called.update(instruction.places)
            instructions.append(instruction)
    kernels = {name: start for name, start in starts.items() if name not in called}
    return Listing(tuple(instructions), labels, kernels)
