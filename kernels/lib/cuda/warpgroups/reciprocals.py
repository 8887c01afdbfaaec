"""Quotients by constants as products, for results of half precision, which show no rounding of single precision."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Region
from xdsl.rewriter import Rewriter

_MIN_DIVISOR, _MAX_DIVISOR = 2.0**-100, 2.0**100  # divisors whose reciprocals are ordinary numbers


def with_reciprocals(region: Region) -> Region:
    """A copy of a scalar region that multiplies by the reciprocals of constants: at most 1.5 units in the last place
    of single precision off.
    """
    copy = region.clone()
    for op in list(copy.block.ops):
        if not isinstance(op, arith.DivfOp) or op.result.type != f32 or not isinstance(op.rhs.owner, arith.ConstantOp):
            continue
        divisor = op.rhs.owner.value
        if isinstance(divisor, FloatAttr) and _MIN_DIVISOR <= abs(divisor.value.data) <= _MAX_DIVISOR:
            reciprocal = arith.ConstantOp(FloatAttr(1 / divisor.value.data, f32))
            Rewriter.replace_op(op, [reciprocal, arith.MulfOp(op.lhs, reciprocal.result)])
    return copy
