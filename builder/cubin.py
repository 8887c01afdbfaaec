"""Machine code of one kernel for one CUDA architecture."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Cubin:
    """The code, and what a thread of it needs."""

    code: bytes
    registers: int
    spilled_bytes: int
