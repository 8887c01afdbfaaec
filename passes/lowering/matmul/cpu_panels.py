"""Panels: the right operand of a product, cut into columns of a tile's width, each row after row in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.dialects.symbolic import Dim

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def pack(matrices: Array, width: int) -> Array:
    """`[b.., depth, columns]` as `[b.., panels, depth, width]`, zeros beyond the last column."""
    import numpy as np

    *batches, depth, columns = matrices.shape
    panels = -(-columns // width)
    padded = np.zeros((*batches, depth, panels * width), matrices.dtype)
    padded[..., :columns] = matrices
    return np.ascontiguousarray(np.swapaxes(padded.reshape(*batches, depth, panels, width), -3, -2))


def batch_steps(packed: tuple[int, ...]) -> list[Dim]:
    """The strides of packed matrices along their batch dimensions."""
    steps: list[Dim] = []
    for axis in range(len(packed) - 3):
        step = 1
        for size in packed[axis + 1 :]:
            step *= size
        steps.append(step)
    return steps
