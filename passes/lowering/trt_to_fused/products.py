"""Matrix products and fully connected layers as `fused.matmul`."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of, tensor
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.passes.lowering.trt_to_fused.conversion import Conversion, Conversions
from mlirt.passes.lowering.trt_to_fused.convolutions import bias_region


def convert_matrix_multiply(at: Conversion) -> None:
    """`trt.matrix_multiply` becomes `fused.matmul`; a vector is viewed as a matrix of one row or column."""
    op = at.op
    assert isinstance(op, MatrixMultiplyOp)
    left, right = op.lhs_op.data, op.rhs_op.data
    lhs, rhs = op.lhs, op.rhs
    if left is MatrixOperation.VECTOR:
        *batch, size = dims(lhs.type)
        lhs = at.viewed(lhs, [*batch, 1, size])
    if right is MatrixOperation.VECTOR:
        rhs = at.viewed(rhs, [*dims(rhs.type), 1])
    product = matmul(at, lhs, rhs, left is MatrixOperation.TRANSPOSE, right is MatrixOperation.TRANSPOSE)
    at.replace(at.viewed(product, dims(op.output.type)))


def matmul(
    at: Conversion, lhs: SSAValue, rhs: SSAValue, transpose_lhs: bool = False, transpose_rhs: bool = False
) -> SSAValue:
    """The product of two matrices over a batch that broadcasts."""
    from mlirt.dialects.broadcasting import broadcast

    left, right = dims(lhs.type), dims(rhs.type)
    rows: Dim = left[-1] if transpose_lhs else left[-2]
    columns: Dim = right[-2] if transpose_rhs else right[-1]
    batch = broadcast([left[:-2], right[:-2]]) if len(left) > 2 else ()
    result = tensor(element_of(lhs.type), [*batch, rows, columns])
    region = bias_region(element_of(lhs.type), [])
    made = MatmulOp(lhs, rhs, result, region, transpose_lhs=transpose_lhs, transpose_rhs=transpose_rhs)
    return at.emit(made)


CONVERSIONS: Conversions = {MatrixMultiplyOp: convert_matrix_multiply}
