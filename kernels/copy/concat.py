"""Joined tensors: inputs that their producers could not write in place are copied into the result."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirt.dialects.fused.joining import JoiningOp
from mlirt.kernels.lib.builder.placement import Placement
from mlirt.kernels.lib.copying import copy_to_each
from mlirt.kernels.lib.tactics.lowering import Lowering


def lower(op: JoiningOp, lowering: Lowering) -> bool:
    """One launch for each tensor, which may be joined with itself."""
    places: dict[SSAValue, list[Placement]] = {}
    for position, value in enumerate(op.inputs):
        if not lowering.placements.writes_into(op, position):
            places.setdefault(value, []).append(lowering.placements.part(op, position))
    for value, targets in places.items():
        copy_to_each(value, targets, op, lowering)
    return True
