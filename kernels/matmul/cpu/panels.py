"""Packed panels, as in BLIS: the right operand of a product, cut into columns of a tile's width, row after row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.dialects.layout import Layout, arranged
from mlirt.dialects.symbolic import Dim

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def pack_operand(transposes: bool, width: int, word: int, operand: Array) -> Array:
    """`pack` for a right operand, of which `transposes` says that it is `[b.., columns, depth]`."""
    return pack(operand.swapaxes(-1, -2) if transposes else operand, width, word)


def pack(matrices: Array, width: int, word: int = 1) -> Array:
    """`[b.., depth, columns]` as `[b.., panels, depth / word, width * word]`, zeros beyond the last column and row.

    A `word` are so many rows of a column. The result is a view where it can be: whoever keeps it copies it once.
    """
    return arranged(matrices, "... (d v) (p n)", "... p d (n v)", n=width, v=word)


def pack_codes(bits: int, width: int, data: Array) -> Array:
    """Codes `[columns, bytes]` as panels `[panels, steps, width * bytes of a step]` for kernels that read few bits.

    Of 8 bits a step is one code, of fewer bits the codes of a word of 32 bits, which lie side by side in both orders.
    """
    return arranged(data, "(p n) (d v)", "p d (n v)", n=width, v=1 if bits == 8 else 4)


def pack_blocks(width: int, coefficients: Array) -> Array:
    """Scales or zero points `[columns, blocks]` as panels `[panels, blocks, width]`; one for all as `[width]`."""
    import numpy as np

    if coefficients.shape == (1, 1):
        return np.full(width, coefficients[0, 0], coefficients.dtype)
    return pack(coefficients.T, width)


def batch_steps(packed: tuple[int, ...]) -> list[Dim]:
    """The strides of packed matrices along their batch dimensions."""
    return list(Layout.row_major(packed).strides()[:-3])
