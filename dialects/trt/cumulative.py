"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition, irdl_op_definition, prop_def

from mlirt.dialects.cumulative_layer import CumulativeLayer
from mlirt.dialects.running_totals import CumulativeKind
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import Tensor
from mlirt.dialects.trt.operand_checks import check_axis, numbers, tensor_type


@irdl_attr_definition
class CumulativeKindAttr(EnumAttribute[CumulativeKind], SpacedOpaqueSyntaxAttribute):
    name = "trt.cumulative_kind"


@irdl_op_definition
class CumulativeOp(CumulativeLayer, TensorOp):
    """y_j = the sum (product) of x_i for i <= j along `axis`; `exclusive`: i < j; `reverse`: from the end.

    C1: the element type is not boolean. C2: `axis` is an axis of the input.

    Example: `%y = trt.cumulative sum %x {axis = 0 : i64} : (tensor<5xf32>) -> tensor<5xf32>`
    """

    name = "trt.cumulative"

    kind = prop_def(CumulativeKindAttr)

    def check(self) -> None:
        numbers(self, "C1", self.input.type)
        check_axis(self, "C2", self.axis.value.data, self.input.type)

    def infer(self) -> Sequence[Tensor]:
        return [tensor_type(self.input.type)]

    def totals(self) -> CumulativeKind:
        return self.kind.data
