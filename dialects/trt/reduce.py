"""Reductions over some axes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import auto
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, TensorType, i64
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

from mlirt.dialects.integer_list import integers
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, is_bool, with_dims
from mlirt.dialects.trt.operand_checks import check_axis

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class ReduceKind(StrEnum):
    SUM = auto()
    PROD = auto()
    MAX = auto()
    MIN = auto()
    AVG = auto()


@irdl_attr_definition
class ReduceKindAttr(EnumAttribute[ReduceKind], SpacedOpaqueSyntaxAttribute):
    name = "trt.reduce_kind"


@irdl_op_definition
class ReduceOp(TensorOp):
    """Combine elements along `axes`, which keep length 1 or, without `keep_dims`, are dropped
    (tensorrt-features.md#1.30a, 1.30b).

    Of booleans, `max` is "any" and `min` is "all". `avg` of integers truncates toward zero. Over no elements:

    | kind | float | int32 | int8 |
    |---|---|---|---|
    | sum, prod | 0, 1 | 0, 1 | 0, 1 |
    | max, min | -inf, inf | smallest, largest | -128, 127 |
    | avg | NaN | 0 | -128 |

    C1: each axis is an axis of the input. C2: no axis is given twice. C3: sum, prod and avg need numbers.

    Example: `%y = trt.reduce avg %x {axes = array<i64: 2, 3>} : (tensor<1x8x7x7xf32>) -> tensor<1x8x1x1xf32>`
    """

    name = "trt.reduce"

    kind = prop_def(ReduceKindAttr)
    input = operand_def(TensorType)
    axes = prop_def(DenseArrayBase.constr(i64))
    keep_dims = prop_def(BoolAttr, default_value=BoolAttr.from_bool(True))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $input attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        axes = integers(self.axes)
        for axis in axes:
            check_axis(self, "C1", axis, self.input.type)
        require(len(set(axes)) == len(axes), f"C2: {self.name} has an axis twice: {list(axes)}")
        if self.kind.data not in (ReduceKind.MAX, ReduceKind.MIN):
            element = element_of(self.input.type)
            require(not is_bool(element), f"C3: {self.name} {self.kind.data} needs numbers, but its input is boolean")

    def infer(self) -> Sequence[Tensor]:
        axes = set(integers(self.axes))
        kept = bool(self.keep_dims.value.data)
        sizes = [
            1 if axis in axes else size for axis, size in enumerate(dims(self.input.type)) if kept or axis not in axes
        ]
        return [with_dims(self.input.type, sizes)]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        from mlirt.dialects.wide_arithmetic import narrow, widen

        (x,) = arrays
        axes, keep = integers(self.axes), bool(self.keep_dims.value.data)
        kind = self.kind.data
        if kind in (ReduceKind.MAX, ReduceKind.MIN):
            return [_extreme(x, kind, axes, keep)]
        wide = widen(x)
        if kind is ReduceKind.PROD:
            return [narrow(wide.prod(axes, keepdims=keep), x.dtype)]
        total = wide.sum(axes, keepdims=keep)
        if kind is ReduceKind.AVG:
            return [_average(total, prod(x.shape[axis] for axis in axes), x)]
        return [narrow(total, x.dtype)]


def _extreme(x: Array, kind: ReduceKind, axes: tuple[int, ...], keep: bool) -> Array:
    import numpy as np

    if x.dtype == np.bool_:
        return np.asarray((x.any if kind is ReduceKind.MAX else x.all)(axes, keepdims=keep))
    if x.dtype.kind in "fV":
        limits = (-np.inf, np.inf)
    else:
        limits = (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
    if kind is ReduceKind.MAX:
        return np.asarray(np.maximum.reduce(x, axes, keepdims=keep, initial=x.dtype.type(limits[0])))
    return np.asarray(np.minimum.reduce(x, axes, keepdims=keep, initial=x.dtype.type(limits[1])))


def _average(total: Array, count: int, x: Array) -> Array:
    import numpy as np

    from mlirt.dialects.wide_arithmetic import is_float_array, narrow

    if is_float_array(x):
        with np.errstate(invalid="ignore"):
            return narrow(total / np.float64(count), x.dtype)
    if count == 0:
        return np.full(total.shape, -128 if x.dtype == np.int8 else 0, x.dtype)
    quotient = np.abs(total) // count
    return narrow(np.where(total < 0, -quotient, quotient), x.dtype)
