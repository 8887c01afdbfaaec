"""Pointwise ops that only pick a box of their operand: slices, which may be shown where the operand lies."""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from mlirt.dialects.fused.access import iteration
from mlirt.dialects.fused.fused_op import is_identity
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.symbolic import Dim, symbols
from mlirt.dialects.tensor_types import dims, element_of

_SHOWN = "fused.shown"


def slice_starts(op: object) -> tuple[Dim, ...] | None:
    """Where the box begins along each dimension, if an op is a slice of its only operand."""
    if not isinstance(op, PointwiseOp) or len(op.inputs) != 1 or len(op.outputs) != 1 or not is_identity(op.body):
        return None
    sizes = dims(op.outputs[0].type)
    (access,) = op.access
    indices = access.indices()
    if len(indices) != len(sizes) or element_of(op.inputs[0].type) != element_of(op.outputs[0].type):
        return None
    starts: list[Dim] = []
    for axis, (index, size) in enumerate(zip(indices, sizes, strict=True)):
        start = index if size == 1 and not _moves(index) else index - iteration(axis)
        if _moves(start):
            return None
        starts.append(start)
    return tuple(starts)


def _moves(index: Dim) -> bool:
    return any(name[0] == "d" and name[1:].isdigit() for name in symbols(index))


def is_shown(op: object) -> bool:
    """Whether a slice has no memory of its own: readers find it where its operand lies."""
    return isinstance(op, PointwiseOp) and _SHOWN in op.attributes


def show(op: Operation) -> None:
    """Let a slice be read where its operand lies."""
    op.attributes[_SHOWN] = UnitAttr()
