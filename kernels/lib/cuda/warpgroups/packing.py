"""Prepacked operands: rows that start at multiples of 16 bytes, columns in the order of register fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.dialects.layout import arranged

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_PIECE = 16  # bytes
_QUAD, _PAIR = 4, 2  # threads that share a row of accumulators, and neighbouring sums of one of them


def packed_rows(array: Array) -> Array:
    """A contiguous copy whose last dimension is filled up with zeros to whole pieces of 16 bytes."""
    import numpy as np

    return np.ascontiguousarray(arranged(array, "... (p e)", "... (p e)", e=_PIECE // array.itemsize))


def in_fragment_order(columns: Array, width: int) -> Array:
    """Columns `[.., column, depth]` so that a thread's sums become those of `width` neighbouring columns of the result.

    The matrix unit gives thread `t` of a quad the columns `8 j + 2 t + e` of `4 width`. Behind the column
    `8 j + 2 t + e` it is given is the operand's column `width t + 2 j + e`. The columns are filled up with zeros to
    multiples of `4 width`.
    """
    import numpy as np

    order = ("... (k t j e) d", "... (k j t e) d")
    return np.ascontiguousarray(arranged(columns, *order, t=_QUAD, j=width // _PAIR, e=_PAIR))


def packed_along_depth(swaps: bool, width: int, matrices: Array) -> Array:
    """A known factor of a product as `[batch.., own, depth]`; it is `[batch.., depth, own]` where that `swaps`.

    With a `width` its lines are in the order of threads that have so many neighbours of a row of the result.
    """
    packed = packed_rows(matrices.swapaxes(-1, -2) if swaps else matrices)
    return in_fragment_order(packed, width) if width else packed
