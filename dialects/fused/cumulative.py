"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from enum import auto
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
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class CumulativeKind(StrEnum):
    SUM = auto()
    PROD = auto()


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
        import numpy as np

        (x,) = arrays
        axis = self.axis.value.data
        is_sum = self.kind.data is CumulativeKind.SUM
        wide = np.moveaxis(x.astype(np.float64) if x.dtype.kind in "fV" else x, axis, 0)
        wide = wide[::-1] if self.reverse.value.data else wide
        if self.exclusive.value.data:
            wide = np.concatenate([np.full_like(wide[:1], 0 if is_sum else 1), wide[:-1]])
        with np.errstate(over="ignore", invalid="ignore"):
            total = (np.cumsum if is_sum else np.cumprod)(wide, 0, wide.dtype)
            total = total[::-1] if self.reverse.value.data else total
            return [np.moveaxis(total, 0, axis).astype(x.dtype)]
