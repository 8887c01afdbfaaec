"""Running sums and products along an axis."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition, irdl_op_definition, prop_def

from mlirt.dialects.cumulative_layer import CumulativeLayer
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.running_totals import CumulativeKind
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import rank


@irdl_attr_definition
class CumulativeKindAttr(EnumAttribute[CumulativeKind], SpacedOpaqueSyntaxAttribute):
    name = "fused.cumulative_kind"


@irdl_op_definition
class CumulativeOp(CumulativeLayer, FusedOp):
    """`result[i] = x[0] + .. + x[i]` along `axis`; `exclusive` leaves x[i] out, `reverse` starts at the end.

    C1: `axis` is an axis of the input. C2: the result has the input's type.

    Example: `%y = fused.cumulative sum %x {axis = 1 : i64} : (tensor<4x9xf32>) -> tensor<4x9xf32>`
    """

    name = "fused.cumulative"
    FAMILY: ClassVar = "rows"

    kind = prop_def(CumulativeKindAttr)

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

    def totals(self) -> CumulativeKind:
        return self.kind.data
