"""Which poolings have a kernel for GPUs that reads channels which are innermost, and writes planes."""

from __future__ import annotations

from math import prod

from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.tensor_types import dims, element_of, is_float, is_float8

MIN_ELEMENTS = 16 * 1024
"""Of a result whose tiles are transposed in shared memory: with fewer a plain loop does as well."""
_MAX_TAPS, _MAX_ROW_TAPS = 9, 16  # of a window, and of its last axis


def has_tiles(op: WindowOp) -> bool:
    """Whether each tap of the windows can have a tile in shared memory."""
    return op.is_inside() and prod(integers(op.window)) <= _MAX_TAPS


def has_result_tiles(op: WindowOp) -> bool:
    """Whether the windows are too large for that, so that what they come to is what tiles of are transposed."""
    sizes = integers(op.window)
    is_whole = op.axes() == tuple(range(2, len(dims(op.input.type))))
    is_wide = is_float(element_of(op.input.type)) and not is_float8(element_of(op.input.type))
    return op.is_inside() and is_whole and is_wide and prod(sizes) > _MAX_TAPS and sizes[-1] <= _MAX_ROW_TAPS


__all__ = ["MIN_ELEMENTS", "has_result_tiles", "has_tiles"]
