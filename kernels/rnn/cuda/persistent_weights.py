"""Recurrent weights in the order in which the threads of a persistent kernel keep them in registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlirt.kernels.rnn.cuda.persistent_shape import UNITS, PersistentShape

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


def for_matrix_unit(recurrent: Array, shape: PersistentShape) -> Array:
    """Weights [depth, gate, unit] as registers [block, warp, step of 16, thread, 4 per tile], each of two elements.

    Register 2 h + s of tile i of thread (g, t) has row 16 i + 8 s + g, that is gate 2 i + s of unit g, and the depths
    2 (4 h + t) and the next.
    """
    import numpy as np

    padded = _padded(recurrent, 2 * shape.tiles, shape)
    steps = shape.share // 16
    split = padded.reshape(shape.warps, steps, 2, 4, 2, shape.tiles, 2, shape.blocks, UNITS)  # w k h t e i s b g
    ordered = split.transpose(7, 0, 1, 8, 3, 5, 2, 6, 4)
    return np.ascontiguousarray(ordered).view(np.int32).reshape(-1)


def for_lanes(recurrent: Array, shape: PersistentShape) -> Array:
    """Weights [depth, gate, unit] as [block, warp, depth by fours, thread, 4]; thread 8 g + u has gate g of unit u."""
    import numpy as np

    padded = _padded(recurrent, shape.rows // UNITS, shape)
    split = padded.reshape(shape.warps, shape.share // 4, 4, shape.rows // UNITS, shape.blocks, UNITS)
    return np.ascontiguousarray(split.transpose(4, 0, 1, 3, 5, 2)).reshape(-1)


def _padded(recurrent: Array, gates: int, shape: PersistentShape) -> Array:
    import numpy as np

    depth, count, units = recurrent.shape
    padded = np.zeros((shape.warps * shape.share, gates, shape.units), recurrent.dtype)
    padded[:depth, :count, :units] = recurrent
    return padded
