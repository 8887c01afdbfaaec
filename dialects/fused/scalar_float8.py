"""The numbers that the bits of 8-bit floats (e4m3, finite, one not-a-number of each sign) stand for, and back.

A float32 has the same layout, with 8 bits of exponent and 23 of mantissa in place of 4 and 3. Both directions use
integers alone where numbers are tiny: a machine may take tiny float32 numbers for zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType, f32, i32
from xdsl.ir import SSAValue

if TYPE_CHECKING:
    from mlirt.dialects.fused.scalar_builder import Scalars

_SHIFT = 20  # bits of mantissa that a float32 has more
_BIAS = 127 - 7
_MIN_NORMAL = 0x08
_NAN = 0x7F
_MAX_FLOAT8 = 448.0
_UNIT = 2.0**-9  # of the numbers below the least normal one, 2 ** -6
_HALF_BELOW = (1 << (_SHIFT - 1)) - 1


def decoded(s: Scalars, bits: SSAValue) -> SSAValue:
    """The float32 number of 8 bits; `s` computes in float32."""
    whole = s.on(i32)
    wide = s.add_op(arith.ExtUIOp(bits, i32))
    size = s.add_op(arith.AndIOp(wide, whole.constant(_NAN)))
    shifted = s.add_op(arith.ShLIOp(size, whole.constant(_SHIFT)))
    normal = s.add_op(arith.BitcastOp(whole.add(shifted, whole.constant(_BIAS << 23)), f32))
    tiny = s.mul(s.add_op(arith.SIToFPOp(size, f32)), s.constant(_UNIT))
    found = s.select(whole.compare("lt", size, whole.constant(_MIN_NORMAL)), tiny, normal)
    found = s.select(whole.compare("eq", size, whole.constant(_NAN)), s.constant(float("nan")), found)
    return s.select(whole.compare("eq", wide, size), found, s.neg(found))


def encoded(s: Scalars, number: SSAValue) -> SSAValue:
    """The bits of the nearest number, ties to the even one; what is beyond the largest becomes the largest."""
    whole = s.on(i32)
    size = s.min(s.abs(number), s.constant(_MAX_FLOAT8))
    bits = s.add_op(arith.BitcastOp(size, i32))
    odd = s.add_op(arith.AndIOp(s.add_op(arith.ShRUIOp(bits, whole.constant(_SHIFT))), whole.constant(1)))
    up = whole.add(whole.add(bits, odd), whole.constant(_HALF_BELOW))
    normal = whole.sub(s.add_op(arith.ShRUIOp(up, whole.constant(_SHIFT))), whole.constant(_BIAS << 3))
    steps = s.function(math.RoundEvenOp, s.mul(size, s.constant(1 / _UNIT)))
    is_number = s.compare("eq", number, number)
    tiny = s.add_op(arith.FPToSIOp(s.select(is_number, steps, s.constant(0.0)), i32))
    code = s.select(s.compare("lt", size, s.constant(2.0**-6)), tiny, normal)
    code = s.select(is_number, code, whole.constant(_NAN))
    rotated = s.add_op(arith.ShRUIOp(s.add_op(arith.BitcastOp(number, i32)), whole.constant(24)))
    sign = s.add_op(arith.AndIOp(rotated, whole.constant(0x80)))
    return s.add_op(arith.TruncIOp(s.add_op(arith.OrIOp(code, sign)), IntegerType(8)))


def code_of(number: float) -> int:
    """The bits of the number nearest to one that is known."""
    from mlirt.dialects.float8 import rounded

    return int(rounded(number).view("int8"))
