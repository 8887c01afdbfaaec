"""Floats and halves into blocks of channels and out of them on a CPU: squares of channels by pixels are transposed in
registers.
"""

from __future__ import annotations

from xdsl.dialects.builtin import bf16, f16, f32

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.tensor_types import dims, element_of, is_row_major, rank, row_length
from mlirt.kernels.lib.cpu.transposed_squares import Lanes, TransposedSquares, cross_loop, moved_as
from mlirt.kernels.lib.language import build
from mlirt.kernels.lib.loops.block_lanes import surplus
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ReformatOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 10

_MOVED = (f32, f16, bf16)


def lower(op: ReformatOp, lowering: Lowering) -> bool:
    nest = _nest(op, lowering)
    cross = None if nest is None else cross_loop(nest, 0, shortest=1)
    if nest is None or cross is None:
        return False
    blocks = op.output if is_blocked(op.output.type) else op.input
    count, lane = surplus(blocks.type), rank(blocks.type) - 1
    masked = None if count is None else Lanes(nest.groups.index((lane,)), 1, count)
    k = lowering.kernel("reformat_transposed")
    element = moved_as(element_of(op.input.type))
    squares = TransposedSquares(NestCode(k, nest, element=element), 0, cross, element, lowering.target, masked)
    build(k, squares.move)
    k.finish(op)
    return True


def _nest(op: ReformatOp, lowering: Lowering) -> Nest | None:
    """The loops over blocks of channels, pixels, and the lanes of a block; None for other copies, and for elements that
    no square can hold.
    """
    enters = is_blocked(op.output.type)
    plain, blocks = (op.input, op.output) if enters else (op.output, op.input)
    lanes = lowering.target.vector_bits // 32
    fits = is_blocked(blocks.type) and not is_blocked(plain.type) and rank(plain.type) == rank(blocks.type) - 1
    if not fits or element_of(plain.type) not in _MOVED or dims(blocks.type)[-1] != lanes:
        return None
    if not is_row_major(plain.type) or row_length(plain.type) or row_length(blocks.type):
        return None
    batch, channel, *pixels = whole(plain, lowering).steps
    operands = [Affine(plain, (batch, channel * lanes, *pixels, channel)), whole(blocks, lowering)]
    nest = Nest.of(dims(blocks.type), operands if enters else operands[::-1]).ordered(1)
    return collapse(nest, frozenset({1, rank(blocks.type) - 1}))
