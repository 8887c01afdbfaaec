"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, TensorType, i64
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

from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.running_totals import CumulativeKind, running_totals
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_attr_definition
class CumulativeKindAttr(EnumAttribute[CumulativeKind], SpacedOpaqueSyntaxAttribute):
    name = "fused.cumulative_kind"


@irdl_op_definition
class CumulativeOp(FusedOp):
    """`result[i] = x[0] + .. + x[i]` along `axis`; `exclusive` leaves x[i] out, `reverse` starts at the end.

    C1: `axis` is an axis of the input. C2: the result has the input's type.

    Example: `%y = fused.cumulative sum %x {axis = 1 : i64} : (tensor<4x9xf32>) -> tensor<4x9xf32>`
    """

    name = "fused.cumulative"

    kind = prop_def(CumulativeKindAttr)
    input = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    exclusive = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    reverse = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $input attr-dict `:` functional-type(operands, results)"

    def __init__(
        self, kind: CumulativeKind, input: SSAValue, axis: int, exclusive: bool = False, reverse: bool = False
    ):
        super().__init__(
            operands=[input],
            properties={
                "kind": CumulativeKindAttr(kind),
                "axis": IntegerAttr(axis, i64),
                "exclusive": BoolAttr.from_bool(exclusive),
                "reverse": BoolAttr.from_bool(reverse),
            },
            result_types=[input.type],
        )

    def verify_(self) -> None:
        axis = self.axis.value.data
        require(
            0 <= axis < rank(self.input.type), f"C1: {self.name} has no axis {axis}: its input is {self.input.type}"
        )
        require(self.input.type == self.output.type, f"C2: {self.name} of {self.input.type} is not {self.output.type}")

    def reference(self, *arrays: Array) -> Sequence[Array]:
        exclusive, backwards = bool(self.exclusive.value.data), bool(self.reverse.value.data)
        axis = self.axis.value.data
        return [running_totals(arrays[0], self.kind.data, axis, exclusive=exclusive, backwards=backwards)]
