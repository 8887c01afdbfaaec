"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from enum import auto
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
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import Tensor
from mlirt.dialects.trt.operand_checks import check_axis, numbers, tensor_type

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class CumulativeKind(StrEnum):
    SUM = auto()
    PROD = auto()


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
        import numpy as np

        from mlirt.dialects.wide_arithmetic import narrow, widen

        (x,) = arrays
        axis, backward = self.axis.value.data, bool(self.reverse.value.data)
        length = int(x.shape[axis])
        ufunc, neutral = (np.add, 0) if self.kind.data is CumulativeKind.SUM else (np.multiply, 1)
        wide = np.flip(widen(x), axis) if backward else widen(x)
        if self.exclusive.value.data and length:
            first = np.full_like(np.take(wide, np.zeros(1, np.int64), axis), neutral)
            wide = np.concatenate([first, np.take(wide, np.arange(length - 1), axis)], axis)
        y = ufunc.accumulate(wide, axis)
        return [narrow(np.flip(y, axis) if backward else y, x.dtype)]
