"""Which poolings have a kernel for GPUs that reads channels which are innermost, and writes planes."""

from __future__ import annotations

from math import prod

from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.integer_list import integers

MIN_ELEMENTS = 16 * 1024
"""Of a result whose tiles are transposed in shared memory: with fewer a plain loop does as well."""
_MAX_TAPS = 9


def has_tiles(op: WindowOp) -> bool:
    """Whether each tap of the windows can have a tile in shared memory."""
    return op.is_inside() and prod(integers(op.window)) <= _MAX_TAPS


__all__ = ["MIN_ELEMENTS", "has_tiles"]
