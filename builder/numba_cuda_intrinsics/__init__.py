"""The words of generated CUDA source: what they mean to numba-cuda, written with LLVM instructions and inline PTX.

The folder is the list: each intrinsic that a file has is a word, and so is each `maker` of one.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import MAKERS
from mlirt.builder.numba_cuda_intrinsics.untyped import types

_CONVERSIONS = {
    name: getattr(types, name)
    for name in (
        *("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    )
}
_FOUND = {
    name: value
    for entry in iter_modules(__path__)
    for name, value in vars(import_module(f"{__name__}.{entry.name}")).items()
    if type(value).__name__ == "_Intrinsic"
}
WORDS: dict[str, Any] = {
    **_CONVERSIONS,
    "bool_": types.boolean,
    **_FOUND,
    **MAKERS,
    "inf": float("inf"),
    "nan": float("nan"),
}
globals().update(WORDS)

__all__ = sorted(WORDS)  # pyright: ignore[reportUnsupportedDunderAll]
