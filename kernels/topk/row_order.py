"""Whole numbers in the order in which elements are sorted, so that sorting compares integers only."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float64Type, IntegerType, f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.tensor_types import byte_width, is_float, is_unsigned
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder


def key_type(element: Attribute) -> IntegerType:
    """The signed integers that stand for the elements of a type."""
    if isinstance(element, Float64Type) or byte_width(element) == 8:
        return i64
    return i64 if byte_width(element) == 4 and is_unsigned(element) else i32


def key(k: KernelBuilder, value: SSAValue, element: Attribute, *, largest_first: bool) -> SSAValue:
    """A number that is the larger, the earlier an element comes; equal for equal elements, NaN above all numbers."""
    type_ = key_type(element)
    if is_float(element):
        result = _float_key(k, value, element, type_)
    else:
        result = k.scalars(type_).cast(k.ready(value), element)
        if byte_width(element) == 8 and is_unsigned(element):
            result = k.value(arith.XOrIOp(result, k.constant(-(2**63), type_)))
    return result if largest_first else k.value(arith.XOrIOp(result, k.constant(-1, type_)))


def _float_key(k: KernelBuilder, value: SSAValue, element: Attribute, type_: IntegerType) -> SSAValue:
    """The bits of a float, with those below the sign flipped for negative ones: in the order of signed integers."""
    wide = f64 if type_ == i64 else f32
    number = k.scalars(wide).cast(value, element)
    is_nan = k.value(arith.CmpfOp(number, number, "uno"))
    number = k.value(arith.AddfOp(number, k.constant(0.0, wide)))  # -0.0 + 0.0 is 0.0
    bits = k.value(arith.BitcastOp(number, type_))
    width = type_.width.data
    sign = k.value(arith.ShRSIOp(bits, k.constant(width - 1, type_)))
    flipped = k.value(arith.AndIOp(sign, k.constant(2 ** (width - 1) - 1, type_)))
    return k.value(
        arith.SelectOp(is_nan, k.constant(2 ** (width - 1) - 1, type_), k.value(arith.XOrIOp(bits, flipped)))
    )


def comes_before(k: KernelBuilder, left: tuple[SSAValue, SSAValue], right: tuple[SSAValue, SSAValue]) -> SSAValue:
    """Whether one (key, position) comes before another: a larger key, or an equal one at a lower position."""
    larger = k.compare("sgt", left[0], right[0])
    equal = k.compare("eq", left[0], right[0])
    lower = k.compare("slt", left[1], right[1])
    return k.value(arith.OrIOp(larger, k.value(arith.AndIOp(equal, lower))))
