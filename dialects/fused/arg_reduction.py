"""Where the extreme along an axis is."""

from __future__ import annotations

from collections.abc import Sequence
from enum import auto
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, IntegerType, TensorType, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, SpacedOpaqueSyntaxAttribute, SSAValue
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
from mlirt.dialects.tensor_types import element_of, numpy_dtype, rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class ExtremeKind(StrEnum):
    MAX = auto()
    MIN = auto()


@irdl_attr_definition
class ExtremeKindAttr(EnumAttribute[ExtremeKind], SpacedOpaqueSyntaxAttribute):
    name = "fused.extreme_kind"


@irdl_op_definition
class ArgReductionOp(FusedOp):
    """The position along `axis` of the largest or smallest element; of equal ones the first, or with `select_last`
    the last.

    NaN counts as an extreme. C1: `axis` is an axis of the input. C2: the result has integers, and the input's rank,
    or with `keep_dims` false one less.

    Example: `%i = fused.arg_reduction max %x {axis = 1 : i64} : (tensor<4x9xf32>) -> tensor<4x1xi64>`
    """

    name = "fused.arg_reduction"
    FAMILY: ClassVar = "rows"

    kind = prop_def(ExtremeKindAttr)
    input = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    keep_dims = prop_def(BoolAttr, default_value=BoolAttr.from_bool(True))
    select_last = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $input attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        kind: ExtremeKind,
        input: SSAValue,
        axis: int,
        result: Attribute,
        keep_dims: bool = True,
        select_last: bool = False,
    ):
        super().__init__(
            operands=[input],
            properties={
                "kind": ExtremeKindAttr(kind),
                "axis": IntegerAttr(axis, i64),
                "keep_dims": BoolAttr.from_bool(keep_dims),
                "select_last": BoolAttr.from_bool(select_last),
            },
            result_types=[result],
        )

    @property
    def keeps_dims(self) -> bool:
        return bool(self.keep_dims.value.data)

    def verify_(self) -> None:
        axis = self.axis.value.data
        require(
            0 <= axis < rank(self.input.type), f"C1: {self.name} has no axis {axis}: its input is {self.input.type}"
        )
        lost = 0 if self.keeps_dims else 1
        fits = (
            isinstance(element_of(self.output.type), IntegerType)
            and rank(self.output.type) == rank(self.input.type) - lost
        )
        require(
            fits,
            f"C2: the result of {self.name} has integers, rank {rank(self.input.type) - lost}, not {self.output.type}",
        )

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        (x,) = arrays
        axis = self.axis.value.data
        choose = np.argmax if self.kind.data is ExtremeKind.MAX else np.argmin
        x = x.astype(np.float64) if x.dtype.kind == "V" else x
        if self.select_last.value.data:
            place = x.shape[axis] - 1 - choose(np.flip(x, axis), axis)
        else:
            place = choose(x, axis)
        kept = np.expand_dims(place, axis) if self.keeps_dims else np.asarray(place)
        return [kept.astype(numpy_dtype(element_of(self.output.type)))]
