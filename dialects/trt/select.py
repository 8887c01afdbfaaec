"""A choice between two tensors, element by element."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.broadcasting import broadcast
from mlirt.dialects.length_requirements import LengthRequirement
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, is_bool, rank, tensor
from mlirt.dialects.trt.operand_checks import same_elements

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class SelectOp(TensorOp):
    """y = then where the condition holds, otherwise else; dimensions of length 1 are repeated
    (tensorrt-features.md#1.35).

    C1: the condition is boolean. C2: both branches have one element type. C3: all ranks are equal.
    C4: dimensions are equal, or 1.

    Example: `%y = trt.select %c, %a, %b : (tensor<4xi1>, tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>`
    """

    name = "trt.select"

    condition = operand_def(TensorType)
    then_input = operand_def(TensorType)
    else_input = operand_def(TensorType)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$condition `,` $then_input `,` $else_input attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        element = element_of(self.condition.type)
        require(is_bool(element), f"C1: the condition of {self.name} must be boolean, but it is {element}")
        same_elements(self, "C2", [self.then_input, self.else_input])
        ranks = [rank(operand.type) for operand in self.operands]
        require(len(set(ranks)) == 1, f"C3: {self.name} needs equal ranks, but they are {', '.join(map(str, ranks))}")
        broadcast([dims(operand.type) for operand in self.operands], "C4")

    def length_requirements(self) -> Iterator[LengthRequirement]:
        from mlirt.dialects.trt.broadcast_axes import broadcast_requirements

        yield from broadcast_requirements(self, "C4")

    def infer(self) -> Sequence[Tensor]:
        return [
            tensor(element_of(self.then_input.type), broadcast([dims(operand.type) for operand in self.operands], "C4"))
        ]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        return [np.where(*arrays)]
