"""Ends a run whose inputs make no sense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerType, StringAttr, TensorType
from xdsl.ir import SSAValue
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def, traits_def
from xdsl.traits import MemoryWriteEffect

from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, element_of, rank
from mlirt.errors import UnmetConditionError

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class RequireOp(TensorOp):
    """Go on where the condition holds; else the run ends with an error that says `message`.

    C1: the condition is a 0-D boolean tensor.

    Example: `trt.require %c {message = "the loop runs past the end of %x"} : tensor<i1>`
    """

    name = "trt.require"

    condition = operand_def(TensorType)
    message = prop_def(StringAttr)

    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$condition attr-dict `:` type($condition)"

    def __init__(self, condition: SSAValue, message: str):
        super().__init__(operands=[condition], properties={"message": StringAttr(message)})

    def check(self) -> None:
        of = self.condition.type
        require(rank(of) == 0 and element_of(of) == IntegerType(1), f"C1: {self.name} cannot decide by {of}")

    def infer(self) -> Sequence[Tensor]:
        return []

    def reference(self, *arrays: Array) -> Sequence[Array]:
        if not arrays[0].item():
            raise UnmetConditionError(self.message.data)
        return []
