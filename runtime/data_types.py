"""The element types that a plan can name, as NumPy and the safetensors container call them."""

from functools import cache

import numpy as np

from mlirt.errors import PlanError

SAFETENSORS_NAMES = {
    "bool": "BOOL",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}
FROM_SAFETENSORS = {theirs: ours for ours, theirs in SAFETENSORS_NAMES.items()}
_EXTENDED = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


@cache
def safetensors_name(dtype: np.dtype[np.generic]) -> str | None:
    """What the container calls a dtype, if it can hold one: NumPy puts the name of a dtype together each time."""
    return SAFETENSORS_NAMES.get(dtype.name)


def numpy_dtype(name: str) -> np.dtype[np.generic]:
    """The NumPy dtype called `name`; the types that NumPy lacks come from ml_dtypes, imported only then."""
    if name not in SAFETENSORS_NAMES:
        raise PlanError(f"unknown data type {name[:40]!r}: expected one of {', '.join(SAFETENSORS_NAMES)}")
    if name in _EXTENDED:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)
