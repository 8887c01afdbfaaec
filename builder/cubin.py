"""Machine code of one kernel for one CUDA architecture, and how a plan stores it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Cubin:
    """The code, and what a thread of it needs."""

    code: bytes
    registers: int
    spilled_bytes: int


def stored(cubins: Mapping[str, Mapping[str, Cubin]]) -> tuple[dict[str, bytes], dict[str, dict[str, object]]]:
    """The sections of a plan with the code of kernels by name and architecture, and what their records say of it."""
    sections: dict[str, bytes] = {}
    records: dict[str, dict[str, object]] = {}
    for kernel, by_architecture in cubins.items():
        names = {architecture: f"{kernel}.{architecture}.cubin" for architecture in by_architecture}
        sections |= {names[architecture]: cubin.code for architecture, cubin in by_architecture.items()}
        records[kernel] = {"symbol": kernel, "object": names}
    return sections, records
