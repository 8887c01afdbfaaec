"""Matrix products and fully connected layers as `fused.matmul`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.broadcasting import broadcast
from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.packed_contraction import PackedMatmulOp
from mlirt.dialects.packed_codes import default_zero
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, element_of, tensor
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.packed_weights import PackedMatrixMultiplyOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions
from mlirt.passes.fusion.trt_to_fused.convolutions import bias_region


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
    result = matmul(
        at,
        lhs,
        rhs,
        left is MatrixOperation.TRANSPOSE,
        right is MatrixOperation.TRANSPOSE,
        element=element_of(op.output.type),
    )
    at.replace(at.viewed(result, dims(op.output.type)))


def convert_fully_connected(at: Conversion) -> None:
    """`trt.fully_connected` becomes `fused.matmul` of the flattened input with the transposed kernel."""
    op = at.op
    assert isinstance(op, FullyConnectedOp)
    shape = dims(op.input.type)
    rows = at.viewed(op.input, [product(shape[:-3]), product(shape[-3:])])
    extras = [] if op.bias is None else [op.bias]
    result = matmul(at, rows, op.kernel, False, True, extras, element_of(op.output.type))
    at.replace(at.viewed(result, dims(op.output.type)))


def matmul(
    at: Conversion,
    lhs: SSAValue,
    rhs: SSAValue,
    transpose_lhs: bool = False,
    transpose_rhs: bool = False,
    bias: Sequence[SSAValue] = (),
    element: Attribute | None = None,
) -> SSAValue:
    """The product of two matrices over a batch that broadcasts; a bias has one value per column.

    The sum is given as `element`, which is that of the operands where it is not said.
    """
    left, right = dims(lhs.type), dims(rhs.type)
    rows: Dim = left[-1] if transpose_lhs else left[-2]
    columns: Dim = right[-2] if transpose_rhs else right[-1]
    batch = broadcast([left[:-2], right[:-2]]) if len(left) > 2 else ()
    result = tensor(element or element_of(lhs.type), [*batch, rows, columns])
    region = bias_region(element_of(lhs.type), element_of(result), bias)
    access = [AccessAttr.of([iteration(len(batch) + 1)])] * len(bias)
    return at.emit(MatmulOp(lhs, rhs, result, region, bias, access, transpose_lhs, transpose_rhs))


def convert_packed_product(at: Conversion) -> None:
    """`trt.packed_matrix_multiply` becomes `fused.packed_matmul`, which reads the codes as they are."""
    op = at.op
    assert isinstance(op, PackedMatrixMultiplyOp)
    bits, block = op.bits.value.data, op.block.value.data
    zero = op.zero_point if op.zero_point is not None else at.constant(default_zero(bits), "zero_point")
    region = bias_region(element_of(op.input.type), element_of(op.output.type), ())
    weights = (op.codes, op.scale, zero)
    float4 = op.float4 is not None
    at.replace(at.emit(PackedMatmulOp(op.input, weights, op.output.type, region, bits, block, float4=float4)))


CONVERSIONS: Conversions = {
    MatrixMultiplyOp: convert_matrix_multiply,
    FullyConnectedOp: convert_fully_connected,
    PackedMatrixMultiplyOp: convert_packed_product,
}
