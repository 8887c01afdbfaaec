"""A rectifier with learned slopes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.broadcasting import broadcast
from mlirt.dialects.length_requirements import LengthRequirement
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, rank, with_dims
from mlirt.dialects.trt.operand_checks import numbers, same_elements

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class ParametricReluOp(TensorOp):
    """y = x where x >= 0, else x * slope; dimensions of length 1 of either are repeated (tensorrt-features.md#1.23).

    C1: both operands have one element type, not boolean. C2: both have the same rank. C3: dimensions are equal, or one
    is 1.

    Example: `%y = trt.parametric_relu %x, %s : (tensor<1x3x4xf32>, tensor<1x3x1xf32>) -> tensor<1x3x4xf32>`
    """

    name = "trt.parametric_relu"

    input = operand_def(TensorType)
    slope = operand_def(TensorType)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$input `,` $slope attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        same_elements(self, "C1")
        numbers(self, "C1", self.input.type)
        ranks = rank(self.input.type), rank(self.slope.type)
        require(ranks[0] == ranks[1], f"C2: {self.name} needs equal ranks, but they are {ranks[0]} and {ranks[1]}")
        broadcast([dims(self.input.type), dims(self.slope.type)], "C3")

    def length_requirements(self) -> Iterator[LengthRequirement]:
        from mlirt.dialects.trt.broadcast_axes import broadcast_requirements

        yield from broadcast_requirements(self, "C3")

    def infer(self) -> Sequence[Tensor]:
        return [with_dims(self.input.type, broadcast([dims(self.input.type), dims(self.slope.type)], "C3"))]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        x, slope = arrays
        return [np.where(x >= 0, x, (x * slope).astype(x.dtype))]
