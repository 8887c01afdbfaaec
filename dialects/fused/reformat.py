"""The same elements in another memory layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.blocked_layout import block_array, is_blocked, plain, unblock_array
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import channels, dims

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class ReformatOp(FusedOp):
    """Copy a tensor from one memory layout to another: plain or blocked channels, with or without a halo, the
    dimensions in any order, rows with or without gaps between them. The gaps are written as zero.

    C1: operand and result hold the same plain tensor.

    Example: `%y = fused.reformat %x : (tensor<1x24x8x8xf32>) -> tensor<1x2x8x8x16xf32, #trt.dims<["1", "2", "8", "8",
    "16"], channels = "24", halo = [1, 1]>>`
    """

    name = "fused.reformat"
    FAMILY: ClassVar = "copy"

    input = operand_def(TensorType)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def __init__(self, input: SSAValue, result: Attribute):
        super().__init__(operands=[input], result_types=[result])

    def verify_(self) -> None:
        require(
            plain(self.input.type) == plain(self.output.type),
            f"C1: {self.name} turns {plain(self.input.type)} into {plain(self.output.type)}",
        )

    def reference(self, *arrays: Array) -> Sequence[Array]:
        (array,) = arrays
        if is_blocked(self.input.type):
            count = channels(self.input.type)
            assert isinstance(count, int)
            array = unblock_array(array, count)
        if is_blocked(self.output.type):
            lanes = dims(self.output.type)[-1]
            assert isinstance(lanes, int)
            array = block_array(array, lanes)
        return [array]
