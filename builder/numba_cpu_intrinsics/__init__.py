"""The words of generated CPU source: what they mean to numba, written with LLVM's vector types.

The folder is the list: each intrinsic that a file has is a word.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.memory import POINTERS
from mlirt.builder.numba_cpu_intrinsics.tile_updates import TILE_UPDATES
from mlirt.builder.numba_cpu_intrinsics.untyped import njit
from mlirt.builder.numba_cpu_intrinsics.worker_memory import WORKER_MEMORIES

# A function that is written into its callers.
inlined: Any = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, inline="never")

_WORDS = {
    name: word
    for entry in iter_modules(__path__)
    for name, word in vars(import_module(f"{__name__}.{entry.name}")).items()
    if type(word).__name__ == "_Intrinsic"
}
_MADE = {**POINTERS, **TILE_UPDATES, **WORKER_MEMORIES}
WORDS: dict[str, Any] = {**_WORDS, **_MADE, "inlined": inlined, "inf": float("inf"), "nan": float("nan")}
globals().update(WORDS)

__all__ = sorted(WORDS)  # pyright: ignore[reportUnsupportedDunderAll]
