"""Machine code of one kernel for one CUDA architecture, and how a plan stores it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from mlirt.builder.gpu_code import COMPUTE


@dataclass(frozen=True)
class Cubin:
    """The code, and what a thread of it needs."""

    code: bytes
    registers: int
    spilled_bytes: int
    remark: str = ""
    """Why another assembler than the one asked for made it."""


def is_cubin(code: bytes) -> bool:
    """Whether the bytes begin as machine code of a GPU does."""
    return len(code) > 64 and code[:6] == b"\x7fELF\x02\x01" and code[18:20] == b"\xbe\x00"


def is_packed_ptx(code: bytes) -> bool:
    """Whether the bytes begin as a compressed text does."""
    return len(code) > 8 and code[0] == 0x78 and int.from_bytes(code[:2], "big") % 31 == 0


def packed(cubin: Cubin) -> bytes:
    """An entry of the cache: a line of JSON, then the code."""
    return json.dumps([cubin.registers, cubin.spilled_bytes]).encode() + b"\n" + cubin.code


def unpacked(entry: bytes) -> Cubin | None:
    """What an entry of the cache holds; None where that is no machine code."""
    header, _, code = entry.partition(b"\n")
    try:
        registers, spilled = json.loads(header)
    except (ValueError, TypeError):
        return None
    fits = isinstance(registers, int) and isinstance(spilled, int) and (is_cubin(code) or is_packed_ptx(code))
    return Cubin(code, registers, spilled) if fits else None


def stored(cubins: Mapping[str, Mapping[str, Cubin]]) -> tuple[dict[str, bytes], dict[str, dict[str, object]]]:
    """The sections of a plan with the code of kernels by name and architecture, and what their records say of it."""
    sections: dict[str, bytes] = {}
    records: dict[str, dict[str, object]] = {}
    for kernel, by_architecture in cubins.items():
        names = {arch: f"{kernel}.{arch}.{'ptx' if arch.startswith(COMPUTE) else 'cubin'}" for arch in by_architecture}
        sections |= {names[architecture]: cubin.code for architecture, cubin in by_architecture.items()}
        records[kernel] = {"symbol": kernel, "object": names}
    return sections, records
