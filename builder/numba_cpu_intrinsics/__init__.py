"""The words of generated CPU source: what they mean to numba, written with LLVM's vector types."""

from typing import Any

from mlirt.builder.numba_cpu_intrinsics import (
    amx,
    arithmetic,
    conversions,
    elementary,
    int8_tiles,
    memory,
    reductions,
    scattered_loads,
    stepped_loads,
    tiles,
    worker_memory,
    workers,
)
from mlirt.builder.numba_cpu_intrinsics.untyped import njit

# A function that is written into its callers.
inlined: Any = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, inline="never")

_SOURCES = (
    amx,
    arithmetic,
    int8_tiles,
    conversions,
    elementary,
    memory,
    reductions,
    scattered_loads,
    stepped_loads,
    tiles,
    workers,
)
_WORDS = {
    name: word for source in _SOURCES for name, word in vars(source).items() if type(word).__name__ == "_Intrinsic"
}
_MADE = {**memory.POINTERS, **worker_memory.WORKER_MEMORIES}
WORDS: dict[str, Any] = {**_WORDS, **_MADE, "inlined": inlined, "inf": float("inf"), "nan": float("nan")}
globals().update(WORDS)

__all__ = sorted(WORDS)  # pyright: ignore[reportUnsupportedDunderAll]
