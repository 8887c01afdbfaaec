"""Integers of 2, 4 or 8 bits, or 4-bit floats, in bytes, lowest bits first, with coefficients for each block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.dialects.symbolic import Dim, ceil_div

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

BITS = (2, 4, 8)
WORD_BITS = 32
"""Kernels read codes of less than a byte by words of so many bits."""

FLOAT4_BITS = 4
FLOAT4_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""Of the codes of 4-bit floats (e2m1) by their lower three bits; the highest bit is the sign."""


def middle(bits: int) -> int:
    """The code that stands for 0 where no zero point says otherwise; of 4-bit floats it is -0."""
    return 1 << (bits - 1)


def default_zero(bits: int) -> Array:
    """The zero point of codes that have none of their own, one for all: [1, 1]."""
    import numpy as np

    return np.full((1, 1), middle(bits), np.uint8)


def row_bytes(depth: Dim, block: int, bits: int) -> Dim:
    """Bytes of a row of `depth` codes, the last block filled up."""
    return ceil_div(depth, block) * (block * bits // 8)


def packed(codes: Array, block: int, bits: int) -> Array:
    """uint8 codes `[.., depth]` as bytes `[.., row_bytes]`; what fills up the last block stands for 0."""
    import numpy as np

    *outer, depth = codes.shape
    whole = -(-depth // block) * block
    padded = np.full((*outer, whole), middle(bits), np.uint8)
    padded[..., :depth] = codes
    if bits == 8:
        return padded
    per = 8 // bits
    result = np.zeros((*outer, whole // per), np.uint8)
    for part in range(per):
        result |= (padded[..., part::per] << np.uint8(part * bits)).astype(np.uint8)
    return result


def unpacked(data: Array, bits: int) -> Array:
    """The uint8 codes in bytes, along the last axis."""
    import numpy as np

    if bits == 8:
        return data
    parts = [(data >> np.uint8(shift)) & np.uint8((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, axis=-1).reshape(*data.shape[:-1], -1)


def float4_numbers(codes: Array) -> Array:
    """The 4-bit floats that codes stand for, in float64."""
    import numpy as np

    return np.concatenate([np.array(FLOAT4_MAGNITUDES), -np.array(FLOAT4_MAGNITUDES)])[codes]


def numbers(
    data: Array, scale: Array, zero: Array | None, block: int, bits: int, depth: int, float4: bool = False
) -> Array:
    """`(code - zero) * scale` in float64, `[.., depth]`; a zero point of one element is that of all.

    With `float4` it is the 4-bit float of the code times the scale.
    """
    import numpy as np

    codes = unpacked(data, bits)[..., :depth]
    if float4:
        return np.asarray(float4_numbers(codes) * _repeated(scale, block, depth))
    codes = codes.astype(np.float64)
    shift = float(middle(bits)) if zero is None else _repeated(np.broadcast_to(zero, scale.shape), block, depth)
    return np.asarray((codes - shift) * _repeated(scale, block, depth))


def _repeated(coefficient: Array, block: int, depth: int) -> Array:
    import numpy as np

    return np.repeat(coefficient.astype(np.float64), block, axis=-1)[..., :depth]
