"""Which lengths of its operands a layer needs to be equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation

from mlirt.dialects.broadcasting import equal_groups, is_repeated
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import dims, is_unknown
from mlirt.dialects.trt.broadcast_axes import broadcast_axes
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.rnn import RnnOp


def equal_lengths(op: Operation) -> Iterator[Sequence[Dim]]:
    """The lengths that must be equal, group by group; those that are repeated, such as 1, are not among them.

    Lengths that broadcast are not either, as a run may make one of them 1, unless their formulas tell that it cannot.
    """
    for axis in broadcast_axes(op):
        yield from (group for group in equal_groups(axis.lengths()) if len(group) > 1)
    for lengths in _lengths(op):
        yield [dim for dim in lengths if not is_repeated(dim) and not is_unknown(dim)]


def _lengths(op: Operation) -> Iterator[Sequence[Dim]]:
    if not isinstance(op, TensorOp):
        return
    shapes = [dims(operand.type) for operand in op.operands]
    if isinstance(op, ConcatenationOp):
        joined = op.axis.value.data
        yield from (lengths for axis, lengths in enumerate(zip(*shapes, strict=True)) if axis != joined)
    elif isinstance(op, RnnOp):
        states = [dims(state.type)[0] for state in (op.initial_hidden, op.initial_cell) if state is not None]
        yield [shapes[0][1], *states]
    elif isinstance(op, MatrixMultiplyOp):
        left, right = op.lhs_op.data, op.rhs_op.data
        columns = -2 if left is MatrixOperation.TRANSPOSE else -1
        rows = -2 if right is MatrixOperation.NONE else -1
        yield shapes[0][columns], shapes[1][rows]
