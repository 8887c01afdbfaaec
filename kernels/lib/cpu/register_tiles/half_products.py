"""Products by weights that are read as halves: where that pays, and where they are multiplied as such."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.dialects.kernel.tile_products import HALF_PRODUCTS, NEON_BITS
from mlirt.dialects.symbolic import Dim

if TYPE_CHECKING:
    from mlirt.dialects.fused.contraction import MatmulOp
    from mlirt.kernels.lib.tactics.lowering import Lowering

# Rows, or bytes of a right operand in float32, with which it pays to read it in half precision.
_ROWS_FOR_HALVES, _BYTES_FOR_HALVES = 32, 1 << 26


def pay_as_halves(rows: Dim, weight_bytes: int) -> bool:
    """Whether panels for so many rows are better stored in half precision, and widened as they are read.

    That saves half of the memory traffic and costs an instruction a vector: 0.4 to 0.9 of the time with up to 32 rows,
    and no more with any number where no cache holds the panels; others would be up to 1.7 times slower.
    """
    return (isinstance(rows, int) and rows <= _ROWS_FOR_HALVES) or weight_bytes >= _BYTES_FOR_HALVES


def adds_halves(op: MatmulOp, lowering: Lowering) -> bool:
    """Whether the processor adds products of halves to float32, the right operand has such, and the left one may be
    rounded to them: nothing is widened then.
    """
    may_round = bool(op.may_round.value.data) and HALF_PRODUCTS <= lowering.target.special
    return may_round and lowering.target.cpu.vector_bits == NEON_BITS and lowering.are_halves(op.rhs)
