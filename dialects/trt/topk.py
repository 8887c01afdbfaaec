"""The largest or smallest elements along an axis, and where they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import auto
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import I64, BoolAttr, IntegerAttr, TensorType, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
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

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.length_requirements import LengthRequirement, at_least
from mlirt.dialects.symbol_values import resolve
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, tensor
from mlirt.dialects.trt.operand_checks import check_axis, numbers

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class TopkKind(StrEnum):
    MAX = auto()
    MIN = auto()


@irdl_attr_definition
class TopkKindAttr(EnumAttribute[TopkKind], SpacedOpaqueSyntaxAttribute):
    name = "trt.topk_kind"


@irdl_op_definition
class TopkOp(TensorOp):
    """The `k` largest (`max`) or smallest (`min`) elements along `axis`, and their indices (tensorrt-features.md#1.40a,
    1.40b).

    Sorted, `max` descends and `min` ascends. Of equal elements the one with the lower index comes first, and is taken
    first; a NaN is larger than every number. Without `sorted` the order is free, and is the sorted one here.

    `size` is a k that depends on the network's dimensions, or that the run computes.

    C1: the element type is not boolean. C2: `axis` is an axis of the input. C3: there is either k or a
    size of one dimension, which is at least 0 and at most the axis's length.

    Example: `%v, %i = trt.topk max %x {k = 2 : i64, axis = 1 : i64} : (tensor<3x5xf32>) -> (tensor<3x2xf32>,
    tensor<3x2xi64>)`
    """

    name = "trt.topk"

    kind = prop_def(TopkKindAttr)
    input = operand_def(TensorType)
    k = opt_prop_def(IntegerAttr[I64])
    size = opt_prop_def(DimsAttr)
    axis = prop_def(IntegerAttr[I64])
    sorted = prop_def(BoolAttr, default_value=BoolAttr.from_bool(True))
    values = result_def(TensorType)
    indices = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $input attr-dict `:` functional-type(operands, results)"

    def count(self) -> Dim:
        """k."""
        if self.k is not None:
            return self.k.value.data
        assert self.size is not None
        return self.size.dims()[0]

    def check(self) -> None:
        numbers(self, "C1", self.input.type)
        sizes = 1 if self.size is None else len(self.size.dims())
        require(
            (self.k is None) != (self.size is None) and sizes == 1,
            f"C3: {self.name} has either k or a size of one dimension",
        )
        check_axis(self, "C2", self.axis.value.data, self.input.type)

    def length_requirements(self) -> Iterator[LengthRequirement]:
        axis, k = self.axis.value.data, self.count()
        length = dims(self.input.type)[axis]
        fault = f"k = {{right}} of {self.name} is not consistent with dimensions: axis {axis} has length {{left}}"
        yield at_least("C3", fault, length, k)
        yield at_least("C3", f"k = {{left}} of {self.name} is negative", k, 0)

    def infer(self) -> Sequence[Tensor]:
        shape = list(dims(self.input.type))
        shape[self.axis.value.data] = self.count()
        return [tensor(element_of(self.input.type), shape), tensor(i64, shape)]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        (x,) = arrays
        axis = self.axis.value.data
        if self.kind.data is TopkKind.MIN:
            order = np.argsort(x, axis, kind="stable")
        else:
            # Reversed twice, so that of equal elements the first stays the first.
            backward = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
            order = x.shape[axis] - 1 - backward
        (count,) = resolve(self, [self.count()], arrays)
        chosen = np.take(order, np.arange(count), axis)
        return [np.take_along_axis(x, chosen, axis), chosen.astype(np.int64)]
