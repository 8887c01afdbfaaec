"""What assemblers say of a kernel besides its code, and how they say no."""

from __future__ import annotations

import re

from mlirt.builder.cubin import Cubin
from mlirt.errors import CompileError

_MAX_SHOWN = 500  # characters of a log in a message


def cubin_of(code: bytes, log: str) -> Cubin:
    """Machine code with the registers and spilled bytes that a log tells."""
    registers = re.search(r"Used (\d+) registers", log)
    spilled = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    return Cubin(code, int(registers[1]) if registers else 0, int(spilled[1]) + int(spilled[2]) if spilled else 0)


def one_line(log: bytes | str) -> str:
    """A log as one line, without what ends texts in C."""
    text = log.decode(errors="replace") if isinstance(log, bytes) else log
    return " ".join(text.replace("\0", " ").split())


def refusal(assembler: str, name: str, architecture: str, log: bytes | str) -> CompileError:
    """The error of an assembler that does not take the PTX of a kernel."""
    shown = one_line(log)[:_MAX_SHOWN]
    return CompileError(f"kernel {name}: {assembler} refuses the PTX for {architecture}: {shown}")
