"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import I64, BoolAttr, IntegerAttr, TensorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
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

from mlirt.dialects.running_totals import CumulativeKind, running_totals
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import Tensor
from mlirt.dialects.trt.operand_checks import check_axis, numbers, tensor_type

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_attr_definition
class CumulativeKindAttr(EnumAttribute[CumulativeKind], SpacedOpaqueSyntaxAttribute):
    name = "trt.cumulative_kind"


@irdl_op_definition
class CumulativeOp(TensorOp):
    """y_j = the sum (product) of x_i for i <= j along `axis`; `exclusive`: i < j; `reverse`: from the end.

    C1: the element type is not boolean. C2: `axis` is an axis of the input.

    Example: `%y = trt.cumulative sum %x {axis = 0 : i64} : (tensor<5xf32>) -> tensor<5xf32>`
    """

    name = "trt.cumulative"

    kind = prop_def(CumulativeKindAttr)
    input = operand_def(TensorType)
    axis = prop_def(IntegerAttr[I64])
    exclusive = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    reverse = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $input attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        numbers(self, "C1", self.input.type)
        check_axis(self, "C2", self.axis.value.data, self.input.type)

    def infer(self) -> Sequence[Tensor]:
        return [tensor_type(self.input.type)]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        exclusive, backwards = bool(self.exclusive.value.data), bool(self.reverse.value.data)
        axis = self.axis.value.data
        return [running_totals(arrays[0], self.kind.data, axis, exclusive=exclusive, backwards=backwards)]
