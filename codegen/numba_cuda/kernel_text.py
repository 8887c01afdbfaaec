"""What the compiler of kernels is given; apart from the rest, so that it need not know the IR."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KernelSource:
    """A kernel as Python source; `arguments` are its types as the text names them: `float32*`, `tensor_map`, `int64`.

    Blocks form clusters of `cluster`, and a processor has registers for `resident` of them at once, at least; a kernel
    that needs one `architecture` is compiled for no other.
    """

    name: str
    text: str
    arguments: tuple[str, ...]
    threads: int
    shared_bytes: int
    cluster: int = 1
    architecture: str = ""
    resident: int = 1
