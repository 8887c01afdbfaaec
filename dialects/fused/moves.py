"""Pointwise ops that only put dimensions in another order: moves, whose producers may write straight there."""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from mlirt.dialects.fused.access import iteration
from mlirt.dialects.fused.fused_op import is_identity
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.tensor_types import element_of, rank

_WRITTEN_THROUGH = "fused.written_through"


def permutation(op: object) -> tuple[int, ...] | None:
    """For each dimension of its only operand, which dimension of the result it is; None where an op is no move."""
    if not isinstance(op, PointwiseOp) or len(op.inputs) != 1 or len(op.outputs) != 1 or not is_identity(op.body):
        return None
    source, result = op.inputs[0].type, op.outputs[0].type
    places = [iteration(axis) for axis in range(rank(result))]
    indices = op.access.data[0].indices()
    if element_of(source) != element_of(result) or len(indices) != len(places) or set(indices) != set(places):
        return None
    return tuple(places.index(index) for index in indices)


def is_written_through(op: object) -> bool:
    """Whether the op that computes the operand of a move writes it where the move's result lies."""
    return isinstance(op, PointwiseOp) and _WRITTEN_THROUGH in op.attributes


def write_through(op: Operation) -> None:
    """Let the op that computes the operand of a move write it where the move's result lies."""
    op.attributes[_WRITTEN_THROUGH] = UnitAttr()
