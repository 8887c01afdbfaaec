"""Numbers at which arithmetic goes wrong: limits of types, signed zeros, infinities, not-a-number, huge angles."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_FLOATS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.0, -2.0, 2.5, 3.0, -3.0, 7.0, 0.1, -0.1, 1e-3, -1e-5),
    *(np.inf, -np.inf, np.nan, np.pi, -np.pi / 2, 100.0, -100.0, 127.5, -128.5, 255.0, 300.0, 65504.0, -70000.0),
    *(1e-30, 1e-38, -1e-40, 5e-324, 2.0**23, 2.0**24 + 2, 2.0**31, -(2.0**31), 2.0**32, 2.0**53, 2.0**63, -(2.0**63)),
    *(2.0**64, 1e15, 1e16, -1e20, 3.4e38, 1e300, -1e308),
)


def special_numbers(dtype: str) -> Array:
    """About 40 numbers of a type, each once."""
    kind = np.dtype(dtype).kind
    with np.errstate(all="ignore"):
        if kind == "f":
            numbers = np.array(_FLOATS).astype(dtype)
            return numbers[np.sort(np.unique(numbers.view(f"u{numbers.itemsize}"), return_index=True)[1])]
    if kind == "b":
        return np.array([False, True])
    limits = np.iinfo(dtype)
    near = [limits.min + k for k in range(4)] + [limits.max - k for k in range(4)]
    small = [0, 1, -1, 2, -2, 3, -3, 5, 7, -7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 255, 1000]
    halves = [limits.max // 2, limits.max // 2 + 1, limits.min // 2, limits.max // 3, int(limits.max**0.5)]
    fitting = [one for one in (*near, *small, *halves) if limits.min <= one <= limits.max]
    return np.array(list(dict.fromkeys(fitting)), dtype)


def all_pairs(dtype: str) -> tuple[Array, Array]:
    """Every special number with every other and itself, as two vectors."""
    numbers = special_numbers(dtype)
    left, right = np.meshgrid(numbers, numbers, indexing="ij")
    return left.ravel(), right.ravel()
