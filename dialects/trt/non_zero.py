"""Where a tensor is not zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType, i64
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, rank, tensor
from mlirt.dialects.trt.shape_values import unknown

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class NonZeroOp(TensorOp):
    """The indices of all elements that are not zero, one column each, in row-major order (tensorrt-features.md#1.45).

    The number of columns is known at run time only.

    C1: the rank is 1 or more.

    Example: `%i = trt.non_zero %x : (tensor<2x3xf32>) -> tensor<2x?xi64>`
    """

    name = "trt.non_zero"

    input = operand_def(TensorType)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        require(rank(self.input.type) > 0, f"C1: {self.name} needs a tensor of rank 1 or more")

    def infer(self) -> Sequence[Tensor]:
        return [tensor(i64, [rank(self.input.type), unknown(1)])]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        return [np.stack(np.nonzero(arrays[0])).astype(np.int64)]
