"""Runs a plan once on the processor that it runs on, and says where its kernels are: for bench/emulated_counts.py."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emulated_messages import read_message
from emulated_server import keep_memory_together


def text_of(code: memoryview, symbol: str) -> tuple[int, int]:
    """Where in its section of an object a symbol is, and the length of the section."""
    from mlirt.runtime.elf_sections import STRTAB, SYMTAB, read_object, text_at
    from mlirt.runtime.elf_symbols import SYMBOL
    from mlirt.runtime.host_cpu import host_architecture

    elf: Any = read_object(code, symbol, host_architecture())
    for table in elf.sections:
        if table.kind == SYMTAB and elf.sections[table.link].kind == STRTAB:
            for name, _, _, home, value, _ in table.rows(SYMBOL):
                if text_at(elf.sections[table.link].body, name, symbol) == symbol:
                    return int(value), int(elf.sections[home].size)
    raise ValueError(f"{symbol} is not there")


def main() -> None:
    if "--together" in sys.argv:
        keep_memory_together()
    import mlirt
    from mlirt.runtime import cpu
    from mlirt.runtime.object_linker import LinkedCode

    linked: list[tuple[Mapping[str, memoryview], LinkedCode]] = []

    class Recorded(LinkedCode):
        """Linked code that is remembered with its objects."""

        def __init__(self, objects: Mapping[str, memoryview], *more: Any) -> None:
            super().__init__(objects, *more)
            linked.append((objects, self))

    cpu.LinkedCode = Recorded
    plan, inputs, answer = (Path(one) for one in sys.argv[1:4])
    with inputs.open("rb") as stream:
        _, feeds = read_message(stream)
    mlirt.load(plan).run(feeds)
    kernels: dict[str, tuple[int, int]] = {}
    for objects, code in linked:
        for (section, symbol), address in code.addresses.items():
            value, size = text_of(objects[section], symbol)
            kernels[symbol] = address - value, size
    answer.write_text(json.dumps(kernels), encoding="utf-8")


if __name__ == "__main__":
    main()
