"""Packed panels, as in BLIS: the right operand of a product, cut into columns of a tile's width, row after row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.dialects.symbolic import Dim

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def pack_operand(transposes: bool, width: int, word: int, operand: Array) -> Array:
    """`pack` for a right operand, of which `transposes` says that it is `[b.., columns, depth]`."""
    return pack(operand.swapaxes(-1, -2) if transposes else operand, width, word)


def pack(matrices: Array, width: int, word: int = 1) -> Array:
    """`[b.., depth, columns]` as `[b.., panels, depth, width]`, zeros beyond the last column.

    With a `word` of several rows it is `[b.., panels, depth / word, width, word]`, zeros beyond the last row.
    """
    import numpy as np

    *batches, depth, columns = matrices.shape
    panels = -(-columns // width)
    lines = -(-depth // word)
    padded = matrices
    if (lines * word, panels * width) != (depth, columns):
        padded = np.zeros((*batches, lines * word, panels * width), matrices.dtype)
        padded[..., :depth, :columns] = matrices
    if word == 1:
        return split_columns(padded, width)
    split = padded.reshape(*batches, lines, word, panels, width)
    ordered = np.moveaxis(np.moveaxis(split, -3, -1), -3, -4)
    return np.ascontiguousarray(ordered.reshape(*batches, panels, lines * word, width))


def pack_codes(bits: int, width: int, data: Array) -> Array:
    """Codes `[columns, bytes]` as panels `[panels, bytes of a step.., width]` for kernels that read few bits.

    Of 8 bits a step is one code, of fewer bits the codes of a word of 32 bits, which lie side by side in both orders.
    """
    import numpy as np

    per = 1 if bits == 8 else 4
    columns, count = data.shape
    panels = -(-columns // width)
    lines = -(-count // per)
    padded = np.zeros((panels * width, lines * per), np.uint8)
    padded[:columns, :count] = data
    split = padded.reshape(panels, width, lines, per).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(split).reshape(panels, lines * per, width)


def pack_blocks(width: int, coefficients: Array) -> Array:
    """Scales or zero points `[columns, blocks]` as panels `[panels, blocks, width]`; one for all as `[width]`."""
    import numpy as np

    if coefficients.shape == (1, 1):
        return np.full(width, coefficients[0, 0], coefficients.dtype)
    return np.ascontiguousarray(pack(coefficients.T, width))


def split_columns(matrices: Array, width: int) -> Array:
    """`[b.., depth, columns]` as `[b.., panels, depth, width]`: a view, so that whoever keeps it copies it once."""
    import numpy as np

    *outer, row, column = matrices.strides
    *batches, depth, columns = matrices.shape
    shape = (*batches, columns // width, depth, width)
    return np.lib.stride_tricks.as_strided(matrices, shape, (*outer, width * column, row, column), writeable=False)


def batch_steps(packed: tuple[int, ...]) -> list[Dim]:
    """The strides of packed matrices along their batch dimensions."""
    steps: list[Dim] = []
    for axis in range(len(packed) - 3):
        step = 1
        for size in packed[axis + 1 :]:
            step *= size
        steps.append(step)
    return steps
