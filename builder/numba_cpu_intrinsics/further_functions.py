"""Elementary functions made of exp, log and polynomials, accurate to about 4 units in the last place.

expm1 and log1p keep their accuracy near zero, and the hyperbolic functions and their inverses are made of them; the
polynomials of the inverse trigonometric functions are those of Cephes. Powers of float32 are computed in float64; see
double_functions.py for those of float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mlirt.builder.numba_cpu_intrinsics import double_functions as doubles
from mlirt.builder.numba_cpu_intrinsics.basic_operations import to_whole
from mlirt.builder.numba_cpu_intrinsics.elementary import (
    exp_minus_one_near_zero,
    exponent_and_mantissa,
    horner,
    log_float32,
    power_of_two,
    rounded_integer,
    split_exponent,
)
from mlirt.builder.numba_cpu_intrinsics.lane_value import Value, maximum, minimum
from mlirt.builder.numba_cpu_intrinsics.lanewise import binary, unary
from mlirt.builder.numba_cpu_intrinsics.untyped import types

# Below it e**x - 1 is -1 in float32; above the other one it is infinite.
_MIN_EXPM1, _MAX_EXPM1 = -18.0, 89.0
# Numbers up to this one are their own expm1, with their sign if they are zero.
_TINY = 2.0**-25
# Half of the angle from which on hyperbolic functions are infinite, in float32 and in float64.
_MAX_HALF, _MAX_WIDE_HALF = 46.0, 356.0
# From here on x**2 + 1 is x**2, and the square is finite for long.
_LARGE = 1e9
# Powers of e up to this size, and their inverses, are normal numbers.
_MIN_NORMAL, _MAX_USUAL_EXPONENT = 2.0**-126, 87.0
# The tangents of 3/8 and 1/8 of pi: between them an angle is taken from pi / 4, above from pi / 2.
_STEEP, _FLAT = math.tan(3 * math.pi / 8), math.tan(math.pi / 8)


def _expm1(x: Value) -> Value:
    return _expm1_float32(x) if x.element == types.float32 else doubles.expm1(x)


def _log(x: Value) -> Value:
    return log_float32(x) if x.element == types.float32 else doubles.log(x)


def _expm1_float32(x: Value) -> Value:
    """(e**r - 1) 2**n + (2**n - 1) for x = n ln 2 + r, from halves, as 2**n may be infinite where the result is not."""
    r, rounded = split_exponent(minimum(maximum(x, x.number(_MIN_EXPM1)), x.number(_MAX_EXPM1)))
    half = power_of_two(rounded_integer(rounded) - 1)
    y = half.fma(exp_minus_one_near_zero(r), half - 0.5)
    return (x.intrinsic("fabs") < _TINY).choose(x, y + y)


def _log1p(x: Value) -> Value:
    """log(1 + x), plus what the rounding of 1 + x has lost."""
    total = x + 1.0
    lost = (x - (total - 1.0)) / total
    is_number = (total > 0.0) & (total < math.inf)
    y = _log(total) + is_number.choose(lost, 0.0)
    return x.compare("==", 0.0).choose(x, y)


def _odd(formula: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """A function with f(-x) = -f(x), from its formula for x >= 0."""
    return lambda x: formula(x.intrinsic("fabs")).intrinsic("copysign", x)


def _half_angle(x: Value) -> tuple[Value, Value]:
    """2 sinh(x / 2) and 2 cosh(x / 2) for x >= 0, up to where their product is infinite."""
    limit = _MAX_HALF if x.element == types.float32 else _MAX_WIDE_HALF
    h = _expm1(minimum(x * 0.5, x.number(limit)))
    inverse = h.number(1.0) / (h + 1.0)
    return h + h * inverse, (h + 1.0) + inverse


def _sinh(x: Value) -> Value:
    sine, cosine = _half_angle(x)
    return sine * 0.5 * cosine


def _cosh(x: Value) -> Value:
    sine, _ = _half_angle(x.intrinsic("fabs"))
    return sine * 0.5 * sine + 1.0


def _asinh(x: Value) -> Value:
    square = x * x
    y = _log1p(x + square / ((square + 1.0).intrinsic("sqrt") + 1.0))
    return (x > _LARGE).choose(_log(x) + math.log(2), y)


def _acosh(x: Value) -> Value:
    above = x - 1.0
    y = _log1p(above + (above * (above + 2.0)).intrinsic("sqrt"))
    y = (x > _LARGE).choose(_log(x) + math.log(2), y)
    return (x < 1.0).choose(x.number(math.nan), y)


def _atanh(x: Value) -> Value:
    return _log1p((x + x) / (x.number(1.0) - x)) * 0.5


def _atan(x: Value) -> Value:
    """For x >= 0: the angle beyond 0, pi / 4 or pi / 2, whichever is near."""
    is_steep, is_middle = x > _STEEP, x > _FLAT
    one = x.number(1.0)
    above = is_steep.choose(-one, is_middle.choose(x - 1.0, x))
    below = is_steep.choose(x, is_middle.choose(x + 1.0, one))
    start = is_steep.choose(x.number(math.pi / 2), is_middle.choose(x.number(math.pi / 4), 0.0))
    z = above / below
    if x.element != types.float32:
        return start + doubles.atan_near_zero(z)
    square = z * z
    p = horner(square, (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1))
    return start + (p * square).fma(z, z)


def _atan2(a: Value, b: Value) -> Value:
    """The angle of the point (b, a), from that of the smaller of both sizes over the larger one."""
    height, width = a.intrinsic("fabs"), b.intrinsic("fabs")
    least, most = minimum(height, width), maximum(height, width)
    ratio = least / most
    ratio = most.compare("==", 0.0).choose(ratio.number(0.0), ratio)
    ratio = least.compare("==", math.inf).choose(ratio.number(1.0), ratio)
    angle = _atan(ratio)
    angle = (height > width).choose(angle.number(math.pi / 2) - angle, angle)
    angle = (b.bits() < 0).choose(angle.number(math.pi) - angle, angle)
    return angle.intrinsic("copysign", a)


def _half_of_arc(x: Value) -> tuple[Value, Value, Value]:
    """For x >= 0: whether it is above a half; then arcsin of sqrt((1 - x) / 2), else that of x."""
    is_large = x > 0.5
    square = is_large.choose((x.number(1.0) - x) * 0.5, x * x)
    z = is_large.choose(square.intrinsic("sqrt"), x)
    if x.element != types.float32:
        return is_large, doubles.asin_up_to_half(z, square), z
    p = horner(square, (4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1))
    return is_large, (p * square).fma(z, z), z


def _asin(x: Value) -> Value:
    is_large, arc, _ = _half_of_arc(x)
    return is_large.choose(arc.fma(-2.0, math.pi / 2), arc)


def _acos(x: Value) -> Value:
    is_large, arc, _ = _half_of_arc(x.intrinsic("fabs"))
    twice = arc + arc
    far = (x < 0.0).choose(x.number(math.pi) - twice, twice)
    return is_large.choose(far, x.number(math.pi / 2) - arc.intrinsic("copysign", x))


def _power(x: Value, y: Value) -> Value:
    """exp(y log x) for positive numbers; by the library if any lane has another one, or a result that is not normal."""
    if x.element != types.float32:
        return doubles.power(x, y)
    exponent = _log_float64(x) * y.to(types.float64)
    is_usual = (x.compare(">=", _MIN_NORMAL)) & (x < math.inf) & (exponent.intrinsic("fabs") < _MAX_USUAL_EXPONENT)
    return (~is_usual).any_lane(lambda: x.library_call("pow", y), _exp_float64(exponent))


def _log_float64(x: Value) -> Value:
    """ln x of positive normal float32 numbers, to 1e-10: 2 artanh((m - 1) / (m + 1)) + e ln 2 for x = m 2**e."""
    exponent, mantissa = exponent_and_mantissa(x)
    m = mantissa.to(types.float64)
    z = (m - 1.0) / (m + 1.0)
    square = z * z
    series = horner(square, [2 / odd for odd in range(13, 0, -2)])
    return exponent.to(types.float64).fma(math.log(2), series * z)


def _exp_float64(x: Value) -> Value:
    """e**x to the nearest float32, for results that are normal numbers."""
    n = to_whole(x * (1 / math.log(2)), "rint")
    r = n.fma(-math.log(2), x)
    p = horner(r, [1 / math.factorial(power) for power in range(9, -1, -1)])
    return p.to(types.float32) * power_of_two(n.to(types.float32).to_int32_in_range())


expm1 = unary(_expm1)
log1p = unary(_log1p)
sinh = unary(_odd(_sinh))
cosh = unary(_cosh)
asinh = unary(_odd(_asinh))
acosh = unary(_acosh)
atanh = unary(_odd(_atanh))
atan = unary(_odd(_atan))
atan2 = binary(_atan2)
asin = unary(_odd(_asin))
acos = unary(_acos)
power = binary(_power)
power_of_integer = binary(_power)
