"""The sum of the products of two fragments, for threads that each have a row of a matrix in registers."""

from __future__ import annotations

from xdsl.dialects.builtin import VectorType, f32
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.kernel.buffers import fragment, length
from mlirt.dialects.tensor_op import require

CHAINS = 4  # sums that are independent of each other, so that one product need not wait for the one before


@irdl_op_definition
class DotProductOp(IRDLOperation):
    """The sum of `left[i] * right[i]` in single precision; every fourth product is in the same one of four sums.

    Example: `%s = kernel.dot_product %a, %b : vector<64xf32>, vector<64xf32>`
    """

    name = "kernel.dot_product"

    left = operand_def(VectorType)
    right = operand_def(VectorType)
    result = result_def(f32)
    traits = traits_def(Pure())
    assembly_format = "$left `,` $right attr-dict `:` type($left) `,` type($right)"

    def __init__(self, left: SSAValue, right: SSAValue) -> None:
        super().__init__(operands=[left, right], result_types=[f32])

    def verify_(self) -> None:
        require(self.left.type == self.right.type, f"{self.name}: {self.left.type} and {self.right.type} differ")
        count = length(self.left)
        require(fragment(self.left).get_element_type() == f32, f"{self.name}: the elements are f32")
        require(count > 0 and count % CHAINS == 0, f"{self.name}: {count} is not a multiple of {CHAINS}")
