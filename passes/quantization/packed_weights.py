"""Constant weights of few bits behind a matrix product: their codes as rows along the sum, with scales by blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.ir import SSAValue

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.integer_list import integers
from mlirt.dialects.packed_codes import WORD_BITS, default_zero, packed
from mlirt.dialects.tensor_types import dims, element_of, is_float, rank
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.int8_products import BYTES
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.packed_weights import DequantizeBlocksOp
from mlirt.dialects.trt.quantize import DequantizeOp
from mlirt.dialects.trt.shuffle import ShuffleOp

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_WHOLE_ROW = 8
"""A row of so many codes of 4 or 8 bits is one of whole words."""


@dataclass(frozen=True)
class PackedWeights:
    """`codes` [n, bytes], `scale` [n, blocks] and `zero`, which is as that or [1, 1], one for all."""

    codes: Array
    scale: Array
    zero: Array
    bits: int
    block: int
    float4: bool = False


def packed_weights(product: MatrixMultiplyOp, ctx: Context, min_elements: int) -> PackedWeights | str:
    """The weights on the right of a product, or why they are none that may stay packed."""
    if product.lhs_op.data is not MatrixOperation.NONE or product.rhs_op.data is MatrixOperation.VECTOR:
        return "it multiplies a vector, or a transposed left operand"
    found = _source(product.rhs)
    if isinstance(found, str):
        return found
    source, swaps = found
    depth_is_last = swaps != (product.rhs_op.data is MatrixOperation.TRANSPOSE)
    if isinstance(source, DequantizeBlocksOp):
        return _of_blocks(source, depth_is_last, ctx)
    return _of_channels(source, depth_is_last, ctx, min_elements)


def _source(value: SSAValue) -> tuple[DequantizeBlocksOp | DequantizeOp, bool] | str:
    """The layer that makes weights of codes, and whether its rows and columns are exchanged on the way."""
    swaps = False
    while not isinstance(owner := value.owner, DequantizeBlocksOp | DequantizeOp):
        if isinstance(owner, IdentityOp) and is_float(element_of(owner.input.type)):
            value = owner.input
        elif isinstance(owner, ShuffleOp) and (swapped := _swaps(owner)) is not None:
            swaps, value = swaps != swapped, owner.input
        else:
            return "its weights are not dequantised from constants"
    return (owner, swaps) if rank(owner.output.type) == 2 else "its weights are more than one matrix"


def _swaps(move: ShuffleOp) -> bool | None:
    """Whether a layer exchanges the last two axes of a matrix; None where it does more than that."""
    if move.shape is not None or move.second_transpose is not None:
        return None
    before, after = dims(move.input.type), dims(move.output.type)
    swaps = False
    if move.first_transpose is not None:
        *outer, row, column = integers(move.first_transpose)
        if outer != list(range(len(outer))):
            return None
        swaps = row > column
    moved = [*before[:-2], before[-1], before[-2]] if swaps else list(before)
    is_matrix = len(after) > 1 and all(size == 1 for size in (*moved[:-2], *after[:-2]))
    return swaps if is_matrix and moved[-2:] == list(after[-2:]) else None


def _of_blocks(source: DequantizeBlocksOp, depth_is_last: bool, ctx: Context) -> PackedWeights | str:
    bits, block, depth = (one.value.data for one in (source.bits, source.block, source.depth))
    codes, scale = array_of(source.codes, ctx), array_of(source.scale, ctx)
    zero = None if source.zero_point is None else array_of(source.zero_point, ctx)
    if codes is None or scale is None or (zero is None and source.zero_point is not None):
        return "its weights are computed at run time"
    if not depth_is_last:
        return "the blocks of its weights do not lie along the sum"
    if bits < 8 and block * bits % WORD_BITS and block < depth:
        return f"blocks of {block} do not begin at whole words of codes"
    is_float = source.float4 is not None
    return PackedWeights(codes, scale, default_zero(bits) if zero is None else zero, bits, block, is_float)


def _of_channels(source: DequantizeOp, depth_is_last: bool, ctx: Context, min_elements: int) -> PackedWeights | str:
    import numpy as np

    stored, scale = array_of(source.input, ctx), array_of(source.scale, ctx)
    zero = np.zeros((), np.int64) if source.zero_point is None else array_of(source.zero_point, ctx)
    if stored is None or scale is None or zero is None:
        return "its weights are computed at run time"
    if element_of(source.input.type) not in BYTES:
        return f"its weights are dequantised from {element_of(source.input.type)}"
    if stored.size < min_elements:
        return f"it has fewer than {min_elements} weights"
    if scale.ndim and (source.axis is None or source.axis.value.data != (0 if depth_is_last else 1)):
        return "its weights have scales along the sum"
    offset, bits = _offset(stored)
    codes = ((stored if depth_is_last else stored.T).astype(np.int16) - offset).astype(np.uint8)
    rows, depth = codes.shape
    block = -(-depth // _WHOLE_ROW) * _WHOLE_ROW
    columns = np.ascontiguousarray(np.broadcast_to(scale.reshape(-1, 1), (rows, 1)))
    shift = (zero.astype(np.int16) - offset).reshape(-1, 1)
    if shift.min() < 0 or shift.max() > 255:
        return "its zero points are beyond its codes"
    return PackedWeights(packed(codes, block, bits), columns, shift.astype(np.uint8), bits, block)


def _offset(stored: Array) -> tuple[int, int]:
    """What is taken from the stored integers so that they are codes, and of how many bits these are."""
    low, high = int(stored.min()), int(stored.max())
    for offset, limit, bits in ((-8, 7, 4), (0, 15, 4)):
        if offset <= low and high <= limit:
            return offset, bits
    return (-128, 8) if stored.dtype.kind == "i" else (0, 8)
