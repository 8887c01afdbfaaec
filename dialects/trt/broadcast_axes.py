"""Which dimensions of a layer's operands broadcast with each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Operation

from mlirt.dialects.broadcasting import common_length, equal_groups, repeated_to
from mlirt.dialects.length_requirements import LengthRequirement, equal
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, is_tensor, is_unknown, rank
from mlirt.dialects.trt.einsum import EinsumOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.multiply_add import MultiplyAddOp
from mlirt.dialects.trt.parametric_relu import ParametricReluOp
from mlirt.dialects.trt.select import SelectOp


@dataclass(frozen=True)
class BroadcastAxis:
    """Dimensions that broadcast: `operands` has pairs of an operand's position and an axis of it."""

    op: Operation
    operands: tuple[tuple[int, int], ...]
    result: int | None
    """The axis of the result that is as long as they are together; none where the layer sums over it."""

    def lengths(self) -> tuple[Dim, ...]:
        """The length in each operand."""
        return tuple(dims(self.op.operands[position].type)[axis] for position, axis in self.operands)

    def target(self) -> Dim:
        """The length that all of them are to have."""
        of = self.op.results[0].type
        declared = None if self.result is None or not is_tensor(of) else dims(of)[self.result]
        return common_length(self.lengths()) if declared is None or is_unknown(declared) else declared


def broadcast_axes(op: Operation) -> Iterator[BroadcastAxis]:
    """The groups of dimensions of a layer's operands that broadcast with each other."""
    if isinstance(op, ElementwiseOp | SelectOp | ParametricReluOp | MultiplyAddOp):
        for axis in range(rank(op.operands[0].type)):
            yield BroadcastAxis(op, tuple((position, axis) for position in range(len(op.operands))), axis)
    elif isinstance(op, MatrixMultiplyOp):
        matrix = 1 if op.lhs_op.data is MatrixOperation.VECTOR else 2
        for axis in range(rank(op.lhs.type) - matrix):
            yield BroadcastAxis(op, ((0, axis), (1, axis)), axis)
    elif isinstance(op, EinsumOp):
        yield from _under_ellipsis(op)


def broadcast_requirements(op: Operation, constraint: str) -> Iterator[LengthRequirement]:
    """What a run must find: each length is that of its group, or 1 and repeated."""
    for group in broadcast_axes(op):
        for first, *others in equal_groups(group.lengths()):
            for other in others:
                fault = "its inputs have the lengths {left} and {right} where they must be equal"
                yield equal(constraint, "", first, other, fault)
        target = group.target()
        for length in group.lengths():
            yield from repeated_to(constraint, length, target)


def _under_ellipsis(op: EinsumOp) -> Iterator[BroadcastAxis]:
    equation = op.parsed()
    for label in dict.fromkeys(label for labels in equation.inputs for label in labels if label.isdigit()):
        places = tuple(
            (position, labels.index(label)) for position, labels in enumerate(equation.inputs) if label in labels
        )
        yield BroadcastAxis(op, places, equation.output.index(label) if label in equation.output else None)
