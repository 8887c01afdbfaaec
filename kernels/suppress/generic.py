"""Non-maximum suppression: groups in parallel, in each one box after the other against all that stay before it."""

from __future__ import annotations

from xdsl.dialects.builtin import i1, i32

from mlirt.dialects.fused.suppress import SuppressOp
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.tensor_types import dims
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.words import Box, Tensor, cast, constant, extent, parallel, reduction
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.suppress.overlap import overlaps

OPS = (SuppressOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: SuppressOp, lowering: Lowering) -> bool:
    k = lowering.kernel("suppress")
    build(k, _suppress, op, Tensor(op.boxes), Tensor(op.allowed), Tensor(op.output))
    k.finish(op)
    return True


@kernel
def _suppress(op: SuppressOp, boxes: Tensor, allowed: Tensor, kept: Tensor) -> None:
    """`for each group, box i: kept[i] = allowed[i] and count < limit and no j < i: kept[j] and overlap(i, j)`."""
    groups, length = dims(op.allowed.type)
    limit, threshold = Tensor(op.limit)[()], Tensor(op.threshold)[()]
    for group in parallel(groups):
        count = constant(0, limit.type)
        for i in range(extent(length)):
            box = [boxes[group, i, corner] for corner in range(4)]

            def hides(j: Value) -> Value:
                is_kept = kept[group, j]
                is_over = overlaps(box, [boxes[group, j, corner] for corner in range(4)], threshold)
                return cast(value_of(is_kept and is_over), i1, i32)

            hidden = reduction(ReduceKind.MAX, Box(i), constant(0, i32), hides)
            is_free = allowed[group, i] and count < limit
            stays = is_free and hidden == 0
            kept[group, i] = stays
            count = count + cast(value_of(stays), i1, limit.type)
