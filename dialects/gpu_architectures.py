"""What code for a GPU's architecture may use, from the files of `dialects/architectures/`.

A device (`dialects/devices/`) says how fast things are, an architecture which instructions there are. One that is
`like` another one has what that has, but for what its own table says.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from mlirt.errors import InvalidInputError

_HERE = Path(__file__).parent / "architectures"

MMA = "mma"
"""Products of halves and of bytes by the matrix units of a warp."""
MMA_BF16 = "mma-bf16"
"""The same of bfloat16."""
ASYNC_COPY = "async-copy"
"""Copies to shared memory that go on while threads compute."""
CLUSTERS = "clusters"
"""Blocks that start together and read each other's shared memory."""
EARLY_START = "early-start"
"""Launches that begin before the one before them has ended."""
WARPGROUPS = "warpgroups"
"""Products of matrices by four warps, from tiles that the device copies."""
TENSOR_MEMORY = "tensor-memory"
"""Products of matrices into tensor memory, from tiles that the device copies."""
INSTRUCTIONS = frozenset({MMA, MMA_BF16, ASYNC_COPY, CLUSTERS, EARLY_START, WARPGROUPS, TENSOR_MEMORY})


@dataclass(frozen=True)
class GpuArchitecture:
    """An architecture by the assembler's name, with the `instructions` that kernels may ask for.

    `device` is the one that kernels are chosen for where none is named; `front` the architecture whose PTX is made for
    it, `ptx` the version of PTX that is kept for newer GPUs.
    """

    name: str
    full_name: str
    device: str
    front: str
    ptx: str
    instructions: frozenset[str]


def architecture_names() -> tuple[str, ...]:
    """The architectures that there is code for, the oldest first."""
    return tuple(_architectures())


def gpu_architecture(name: str) -> GpuArchitecture:
    """The architecture of a name; raises `InvalidInputError` that lists the names for another one."""
    found = _architectures().get(name)
    if found is None:
        raise InvalidInputError(f"code for {name!r} is not made: expected one of {', '.join(architecture_names())}")
    return found


def has_instruction(architecture: str, instruction: str) -> bool:
    """Whether an architecture has what a kernel asks for; one that there is no code for has nothing."""
    found = _architectures().get(architecture)
    return found is not None and instruction in found.instructions


@cache
def _architectures() -> dict[str, GpuArchitecture]:
    import tomllib

    table = tomllib.loads((_HERE / "nvidia.toml").read_text(encoding="utf-8"))
    rows = cast("dict[str, dict[str, Any]]", table["architectures"])
    return {name: GpuArchitecture(name, **_resolved(name, rows)) for name in rows}


def _resolved(name: str, rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The fields of a row, with those of the one that it is like."""
    own: dict[str, Any] = dict(rows[name])
    if "instructions" in own:
        own["instructions"] = frozenset(own["instructions"])
    like = own.pop("like", None)
    return own if like is None else {**_resolved(like, rows), **own}


__all__ = [
    "ASYNC_COPY",
    "CLUSTERS",
    "EARLY_START",
    "INSTRUCTIONS",
    "MMA",
    "MMA_BF16",
    "TENSOR_MEMORY",
    "WARPGROUPS",
    "GpuArchitecture",
    "architecture_names",
    "gpu_architecture",
    "has_instruction",
]
