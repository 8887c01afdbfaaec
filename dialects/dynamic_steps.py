"""Rounding of rows of numbers to 256 steps, which span the numbers of a row and zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def dynamic_steps(rows: Array) -> tuple[Array, Array]:
    """Numbers [N, H] as whole numbers of steps, zero being 0 of them, and the sizes [N, 1] of the steps.

    A step is (high - low) / 255 in single precision, where low and high are the least and the largest number of the
    row and 0; it is 1 where the row is all zeros. Halves are rounded to even.
    """
    import numpy as np

    x = rows.astype(np.float32)
    low, high = x.min(1, keepdims=True, initial=0), x.max(1, keepdims=True, initial=0)
    size = np.where(high == low, np.float32(1), (high - low) / np.float32(255))
    zero = np.rint(np.clip(-low / size, 0, 255))
    return np.clip(np.rint(x / size) + zero, 0, 255) - zero, size
