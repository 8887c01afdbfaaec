"""The k largest or smallest elements along an axis."""

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
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.fused.fused_op import FusedOp, bind_dims, numbers_of
from mlirt.dialects.fused.softmax import normalized
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import dims, element_of, is_float, numpy_dtype, rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class ExtremeKind(StrEnum):
    MAX = auto()
    MIN = auto()


@irdl_attr_definition
class ExtremeKindAttr(EnumAttribute[ExtremeKind], SpacedOpaqueSyntaxAttribute):
    name = "fused.extreme_kind"


class Normalization(StrEnum):
    SOFTMAX = auto()
    LOG_SOFTMAX = auto()


@irdl_attr_definition
class NormalizationAttr(EnumAttribute[Normalization], SpacedOpaqueSyntaxAttribute):
    name = "fused.topk_normalization"


@irdl_op_definition
class TopkOp(FusedOp):
    """The k extreme elements along `axis` and their positions, the most extreme first; of equal ones the lower
    position first.

    k is the length of the results along `axis`. Without `sorted` any order is legal. NaN counts as the largest.
    With `normalization` the values are what `fused.softmax` along the axis makes of those elements (`softmax` or
    `log_softmax`), which does not change their order.
    C1: `axis` is an axis of the input. C2: the values have the input's element type, the indices are integers, and
    both have the same dimensions. C3: only the largest of floating-point numbers are normalised.

    Example: `%v, %i = fused.topk max %x {axis = 1 : i64} : (tensor<4x9xf32>) -> (tensor<4x3xf32>, tensor<4x3xi64>)`
    """

    name = "fused.topk"
    FAMILY: ClassVar = "rows"

    kind = prop_def(ExtremeKindAttr)
    input = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    sorted = prop_def(BoolAttr, default_value=BoolAttr.from_bool(True))
    normalization = opt_prop_def(NormalizationAttr)
    values = result_def(TensorType)
    indices = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $input attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        kind: ExtremeKind,
        input: SSAValue,
        axis: int,
        values: Attribute,
        indices: Attribute,
        sorted: bool = True,
        normalization: Normalization | None = None,
    ):
        super().__init__(
            operands=[input],
            properties={
                "kind": ExtremeKindAttr(kind),
                "axis": IntegerAttr(axis, i64),
                "sorted": BoolAttr.from_bool(sorted),
                "normalization": None if normalization is None else NormalizationAttr(normalization),
            },
            result_types=[values, indices],
        )

    def count(self) -> Dim:
        """k."""
        return dims(self.values.type)[self.axis.value.data]

    def normalization_kind(self) -> Normalization | None:
        return None if self.normalization is None else self.normalization.data

    def verify_(self) -> None:
        axis = self.axis.value.data
        require(
            0 <= axis < rank(self.input.type), f"C1: {self.name} has no axis {axis}: its input is {self.input.type}"
        )
        fits = element_of(self.values.type) == element_of(self.input.type) and dims(self.values.type) == dims(
            self.indices.type
        )
        fits = (
            fits
            and isinstance(element_of(self.indices.type), IntegerType)
            and rank(self.values.type) == rank(self.input.type)
        )
        require(fits, f"C2: {self.name} of {self.input.type} does not give {self.values.type} and {self.indices.type}")
        is_possible = self.kind.data is ExtremeKind.MAX and is_float(element_of(self.input.type))
        require(
            self.normalization is None or is_possible,
            f"C3: {self.name} normalises the largest floating-point numbers, not {self.kind.data} of {self.input.type}",
        )

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        (x,) = arrays
        axis = self.axis.value.data
        k = numbers_of([self.count()], bind_dims(self, arrays))[0]
        keys = x.astype(np.float64) if x.dtype.kind == "V" else x
        if self.kind.data is ExtremeKind.MIN:
            order = np.argsort(keys, axis, kind="stable")
        else:  # a stable descending order is the reversed stable ascending order of the reversed axis
            order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(keys, axis), axis, kind="stable"), axis)
        places = np.take(order, np.arange(k), axis)
        values, kind = x, self.normalization_kind()
        if kind is not None:
            values = normalized(x, axis, log=kind is Normalization.LOG_SOFTMAX)
        return [np.take_along_axis(values, places, axis), places.astype(numpy_dtype(element_of(self.indices.type)))]
