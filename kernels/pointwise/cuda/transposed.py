"""A pointwise op with operands that lie across its result in memory: blocks transpose tiles in shared memory."""

from __future__ import annotations

from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.kernels.lib.cuda.transposition.transposed_plan import THREADS, find
from mlirt.kernels.lib.cuda.transposition.transposed_tiles import TransposedTiles
from mlirt.kernels.lib.language import build
from mlirt.kernels.lib.language.words import inline
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.pointwise.generic import splat
from mlirt.kernels.pointwise.streams import streams_of

OPS = (PointwiseOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10


def lower(op: PointwiseOp, lowering: Lowering) -> bool:
    found = streams_of(op, lowering)
    if found is None:
        return False
    extents, (*inputs, result) = found
    plan = find(extents, inputs, result)
    if plan is None:
        return False
    k = lowering.kernel("pointwise")
    numbers = [splat(k, value, lowering) for value in op.inputs]

    build(k, TransposedTiles(k, plan, numbers).write, lambda scalars: inline(op.body, scalars)[0])
    k.finish(op, grid=[plan.blocks, 1, 1], block=[THREADS])
    return True
