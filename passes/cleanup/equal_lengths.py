"""Which lengths of its operands a layer needs to be equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation

from mlirt.dialects.broadcasting import is_repeated
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import dims, is_unknown
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.parametric_relu import ParametricReluOp
from mlirt.dialects.trt.rnn import RnnOp
from mlirt.dialects.trt.select import SelectOp


def equal_lengths(op: Operation) -> Iterator[Sequence[Dim]]:
    """The lengths that must be equal, group by group; those that are repeated, such as 1, are not among them."""
    for lengths in _lengths(op):
        yield [dim for dim in lengths if not is_repeated(dim) and not is_unknown(dim)]


def _lengths(op: Operation) -> Iterator[Sequence[Dim]]:
    if not isinstance(op, TensorOp):
        return
    shapes = [dims(operand.type) for operand in op.operands]
    if isinstance(op, ElementwiseOp | SelectOp | ParametricReluOp):
        yield from zip(*shapes, strict=True)
    elif isinstance(op, ConcatenationOp):
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
        batches = (shapes[0][: _first_of_matrix(left)], shapes[1][: _first_of_matrix(right)])
        yield from zip(*batches, strict=True)


def _first_of_matrix(operation: MatrixOperation) -> int:
    return -1 if operation is MatrixOperation.VECTOR else -2
