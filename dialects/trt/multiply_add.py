"""A product and a sum that are rounded together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType, f32
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.broadcasting import broadcast
from mlirt.dialects.length_requirements import LengthRequirement
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, rank, tensor

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class MultiplyAddOp(TensorOp):
    """y = lhs * rhs + addend, rounded once; dimensions of length 1 are repeated.

    It is for arithmetic that has to agree in the last bit with that of other programs.

    C1: all operands are f32. C2: all ranks are equal. C3: dimensions are equal, or 1.

    Example: `%y = trt.multiply_add %a, %b, %c : (tensor<4x3xf32>, tensor<1x1xf32>, tensor<1x3xf32>) -> tensor<4x3xf32>`
    """

    name = "trt.multiply_add"

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    addend = operand_def(TensorType)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs `,` $addend attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        elements = [element_of(operand.type) for operand in self.operands]
        require(
            all(element == f32 for element in elements),
            f"C1: {self.name} needs operands of f32, but they are {', '.join(map(str, elements))}",
        )
        ranks = [rank(operand.type) for operand in self.operands]
        require(len(set(ranks)) == 1, f"C2: {self.name} needs equal ranks, but they are {', '.join(map(str, ranks))}")
        broadcast([dims(operand.type) for operand in self.operands], "C3")

    def length_requirements(self) -> Iterator[LengthRequirement]:
        from mlirt.dialects.trt.broadcast_axes import broadcast_requirements

        yield from broadcast_requirements(self, "C3")

    def infer(self) -> Sequence[Tensor]:
        return [tensor(f32, broadcast([dims(operand.type) for operand in self.operands], "C3"))]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        # Products are exact in double precision, and so are their sums with what is not far smaller or larger.
        lhs, rhs, addend = (array.astype(np.float64) for array in arrays)
        with np.errstate(all="ignore"):
            return [np.asarray(lhs * rhs + addend).astype(np.float32)]
