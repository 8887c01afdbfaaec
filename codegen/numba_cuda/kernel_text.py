"""What the compiler of kernels is given; apart from the rest, so that it need not know the IR."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KernelSource:
    """A kernel as Python source; `arguments` are its types as the text names them: `float32*`, `int64`."""

    name: str
    text: str
    arguments: tuple[str, ...]
    threads: int
    shared_bytes: int
