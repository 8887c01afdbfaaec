"""The machine that a network is compiled for, as far as passes and code generators care."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

TargetKind: TypeAlias = Literal["cpu", "cuda", "reference"]


@dataclass(frozen=True)
class Target:
    """A kind of machine with its vector width in bits, instruction set features, CUDA architecture and worker
    threads.

    All code may use `features`; `special` ones it has too, for the kernels that are made for them.
    """

    kind: TargetKind
    vector_bits: int = 512
    features: frozenset[str] = frozenset()
    arch: str = "sm_90a"
    threads: int = 2
    special: frozenset[str] = frozenset()
