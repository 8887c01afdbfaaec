"""Products of matrices and vectors over a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import auto
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.broadcasting import broadcast
from mlirt.dialects.length_requirements import LengthRequirement, equal
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, numpy_dtype, tensor
from mlirt.dialects.trt.int8_products import check_products, sum_element

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class MatrixOperation(StrEnum):
    NONE = auto()
    TRANSPOSE = auto()
    VECTOR = auto()


@irdl_attr_definition
class MatrixOperationAttr(EnumAttribute[MatrixOperation], SpacedOpaqueSyntaxAttribute):
    name = "trt.matrix_operation"


@irdl_op_definition
class MatrixMultiplyOp(TensorOp):
    """op(lhs) op(rhs) over the last two axes; earlier axes are a batch, length 1 is repeated
    (tensorrt-features.md#1.22a, 1.22b).

    `transpose` swaps the last two axes of an operand; `vector` says that its last axis is a row vector on the left, a
    column vector on the right, and the result has no axis in its place. A sum over an empty axis is 0.
    Bytes (i8 or ui8) times i8 give the exact sum as i32, 8-bit floats the sum as f32.

    C1: both operands have one element type, not boolean; bytes have i8 on the right. C2: an operand has rank 2 or more,
    a vector rank 1 or more. C3: both have the same number of batch axes. C4: the columns of op(lhs) are the rows of
    op(rhs). C5: batch dimensions are equal, or one of them is 1.

    Example: `%y = trt.matrix_multiply %a, %b {rhs_op = #trt<matrix_operation transpose>} :
    (tensor<2x3x4xf32>, tensor<1x5x4xf32>) -> tensor<2x3x5xf32>`
    """

    name = "trt.matrix_multiply"

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    lhs_op = prop_def(MatrixOperationAttr, default_value=MatrixOperationAttr(MatrixOperation.NONE))
    rhs_op = prop_def(MatrixOperationAttr, default_value=MatrixOperationAttr(MatrixOperation.NONE))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        check_products(self, "C1", float8=True)
        for operand, operation, label in ((self.lhs, self.lhs_op, "lhs"), (self.rhs, self.rhs_op, "rhs")):
            least = 1 if operation.data is MatrixOperation.VECTOR else 2
            found = len(dims(operand.type))
            require(found >= least, f"C2: {label} of {self.name} has rank {found}, expected {least} or more")
        left, right = _split(self.lhs, self.lhs_op), _split(self.rhs, self.rhs_op)
        require(
            len(left[0]) == len(right[0]),
            f"C3: {self.name} needs equal numbers of batch axes, but they are {len(left[0])} and {len(right[0])}",
        )
        self._batch()

    def length_requirements(self) -> Iterator[LengthRequirement]:
        from mlirt.dialects.trt.broadcast_axes import broadcast_requirements

        left, right = _split(self.lhs, self.lhs_op), _split(self.rhs, self.rhs_op)
        yield equal("C4", f"columns of lhs and rows of rhs of {self.name}", left[1][-1], right[1][0])
        yield from broadcast_requirements(self, "C5")

    def _batch(self) -> tuple[Dim, ...]:
        left, _ = _split(self.lhs, self.lhs_op)
        right, _ = _split(self.rhs, self.rhs_op)
        return broadcast([left, right]) if left else ()

    def infer(self) -> Sequence[Tensor]:
        rows = _split(self.lhs, self.lhs_op)[1][:-1]
        columns = _split(self.rhs, self.rhs_op)[1][1:]
        return [tensor(sum_element(self.lhs.type, self.rhs.type), [*self._batch(), *rows, *columns])]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        from mlirt.dialects.wide_arithmetic import narrow, widen_factors

        left, right = arrays
        left_op, right_op = self.lhs_op.data, self.rhs_op.data
        rows = left[..., None, :] if left_op is MatrixOperation.VECTOR else left
        rows = rows.swapaxes(-1, -2) if left_op is MatrixOperation.TRANSPOSE else rows
        columns = right[..., None] if right_op is MatrixOperation.VECTOR else right
        columns = columns.swapaxes(-1, -2) if right_op is MatrixOperation.TRANSPOSE else columns
        result = np.matmul(*widen_factors(rows, columns, rows.shape[-1]))
        if right_op is MatrixOperation.VECTOR:
            result = result[..., 0]
        if left_op is MatrixOperation.VECTOR:
            result = result[..., 0] if right_op is MatrixOperation.VECTOR else result[..., 0, :]
        return [narrow(result, numpy_dtype(sum_element(self.lhs.type, self.rhs.type)))]


def _split(operand: SSAValue, operation: MatrixOperationAttr) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """Batch dimensions, and the dimensions of the matrix or vector after its operation."""
    own = dims(operand.type)
    if operation.data is MatrixOperation.VECTOR:
        return own[:-1], own[-1:]
    matrix = own[-2:]
    return own[:-2], matrix[::-1] if operation.data is MatrixOperation.TRANSPOSE else matrix
