"""The dimensions of a tensor as a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType, i64
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import Tensor, rank, tensor

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class ShapeOp(TensorOp):
    """The lengths of the input's axes, 64-bit (tensorrt-features.md#1.36); of a scalar, a tensor without elements.

    Example: `%s = trt.shape %x : (tensor<2x3xf32>) -> tensor<2xi64>`
    """

    name = "trt.shape"

    input = operand_def(TensorType)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Tensor]:
        return [tensor(i64, [rank(self.input.type)])]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        return [np.array(arrays[0].shape, np.int64)]
