"""Int8 layers: exact sums of products of 8-bit integers, as 32-bit integers that wrap around; 8-bit floats."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, Signedness, f32, i8, i32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import element_of, is_float8
from mlirt.dialects.trt.operand_checks import numbers, same_elements_but_bias

ui8 = IntegerType(8, Signedness.UNSIGNED)
BYTES = (i8, ui8)


def multiplies_int8(left: Attribute, right: Attribute) -> bool:
    """Whether tensors of these types are bytes with int8 as weights, whose products are summed in int32."""
    return element_of(left) in BYTES and element_of(right) == i8


def multiplies_float8(left: Attribute, right: Attribute) -> bool:
    """Whether tensors of these types are 8-bit floats, whose products are summed in float32."""
    return is_float8(element_of(left)) and element_of(left) == element_of(right)


def sum_element(left: Attribute, right: Attribute) -> Attribute:
    """The element type of a sum of products: int32 for bytes with int8, float32 for 8-bit floats, else that of
    the operands.
    """
    if multiplies_float8(left, right):
        return f32
    return i32 if multiplies_int8(left, right) else element_of(left)


def check_products(op: TensorOp, constraint: str, bias: SSAValue | None = None, *, float8: bool = False) -> None:
    """Raise unless the first two operands are numbers of one type, or bytes and int8, and the bias fits.

    8-bit floats have products only where `float8` says so.
    """
    left, right = op.operands[0].type, op.operands[1].type
    require(float8 or not multiplies_float8(left, right), f"{constraint}: {op.name} has no products of 8-bit floats")
    if not multiplies_int8(left, right):
        same_elements_but_bias(op, constraint, bias)
        numbers(op, constraint, left)
    elif bias is not None:
        found = element_of(bias.type)
        require(found == i32, f"{constraint}: the bias of {op.name} in int8 needs element type i32, not {found}")
