"""Recurrent weights in the order in which the threads of a persistent kernel keep them in registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlirt.dialects.layout import arranged
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

    sizes = {"w": shape.warps, "k": shape.share // 16, "i": shape.tiles, "b": shape.blocks, "g": UNITS}
    order = ("(w k h t e) (i s) (b g)", "(b w k g t i h s e)")
    return np.ascontiguousarray(arranged(recurrent, *order, h=2, t=4, e=2, s=2, **sizes)).view(np.int32)


def for_lanes(recurrent: Array, shape: PersistentShape) -> Array:
    """Weights [depth, gate, unit] as [block, warp, depth by fours, thread, 4]; thread 8 g + u has gate g of unit u."""
    sizes = {"w": shape.warps, "d": shape.share // 4, "g": shape.rows // UNITS, "b": shape.blocks, "u": UNITS}
    return arranged(recurrent, "(w d e) g (b u)", "(b w d g u e)", e=4, **sizes)
