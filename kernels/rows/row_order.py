"""Whole numbers in the order in which elements are sorted, so that sorting compares integers only."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float64Type, IntegerType, f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.tensor_types import byte_width, is_float, is_unsigned
from mlirt.kernels.lib.language import Value, builder, kernel
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.words import cast, is_nan


def key_type(element: Attribute) -> IntegerType:
    """The signed integers that stand for the elements of a type."""
    if isinstance(element, Float64Type) or byte_width(element) == 8:
        return i64
    return i64 if byte_width(element) == 4 and is_unsigned(element) else i32


@kernel
def key(value: SSAValue, element: Attribute, *, largest_first: bool) -> Value:
    """A number that is the larger, the earlier an element comes; equal for equal elements, NaN above all numbers."""
    type_ = key_type(element)
    if is_float(element):
        result = _float_key(value, element, type_)
    else:
        result = cast(builder().ready(value), element, type_)
        if byte_width(element) == 8 and is_unsigned(element):
            result = result ^ -(2**63)
    return result if largest_first else result ^ -1


@kernel
def _float_key(value: SSAValue, element: Attribute, type_: IntegerType) -> Value:
    """The bits of a float, with those below the sign flipped for negative ones: in the order of signed integers."""
    number, width = cast(value, element, f64 if type_ == i64 else f32), type_.width.data
    bits, most = emit(arith.BitcastOp(number + 0.0, type_)), 2 ** (width - 1) - 1  # -0.0 + 0.0 is 0.0
    return most if is_nan(number) else bits ^ ((bits >> (width - 1)) & most)


@kernel
def comes_before(left: tuple[Any, Any], right: tuple[Any, Any]) -> Any:
    """Whether one (key, position) comes before another: a larger key, or an equal one at a lower position."""
    return left[0] > right[0] or (left[0] == right[0] and left[1] < right[1])
