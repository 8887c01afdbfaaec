"""A concatenation: inputs that their producers could not write in place are copied into the result."""

from __future__ import annotations

from xdsl.ir import Operation

from mlirt.dialects.fused.concat import ConcatOp
from mlirt.passes.lowering.copying import copy
from mlirt.passes.lowering.lowering import Lowering

OPS = (ConcatOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: Operation, lowering: Lowering) -> bool:
    assert isinstance(op, ConcatOp)
    for position, value in enumerate(op.inputs):
        if not lowering.placements.writes_into(op, position):
            copy(value, lowering.placements.part(op, position), op, lowering)
    return True
