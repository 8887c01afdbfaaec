"""Elementary functions of float64 in vectors, accurate to some 4 units in the last place: reductions and polynomials.

Powers and the logarithm of their base carry what a float64 rounds off along as a second number. The library is called
for angles beyond a million, and for powers of what is no usual number. Coefficients that no series gives are Chebyshev
approximations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirt.builder.numba_cpu_intrinsics.basic_operations import plus_product, sum_and_rest, to_whole
from mlirt.builder.numba_cpu_intrinsics.lane_value import Value, maximum, minimum
from mlirt.builder.numba_cpu_intrinsics.untyped import types

# The logarithm of 2 and half of pi as sums: multiples of all parts but the last by whole numbers of 20 bits are exact.
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42ffp-1"), float.fromhex("-0x1.718432a1b0e26p-35")
_HALF_PI = tuple(
    float.fromhex(part) for part in ("0x1.921fb544p+0", "0x1.0b4611a6p-34", "0x1.3198a2ep-69", "0x1.b839a252049c1p-104")
)
_MAX_ANGLE = 2.0**20
_BIAS, _DIGITS = 1023, 52
_ROOT_OF_HALF = 0x3FE6A09E667F3BCD
_MANTISSA = (1 << _DIGITS) - 1
_MIN_NORMAL = 2.0**-1022
_TINY = 2.0**-54
_EXP = tuple(1 / math.factorial(power) for power in range(13, 1, -1))
_SINE = tuple((-1) ** (power // 2) / math.factorial(power) for power in range(17, 1, -2))
_COSINE = tuple((-1) ** (power // 2) / math.factorial(power) for power in range(18, 2, -2))
# The logarithm of (1 + s) / (1 - s), without its first term, divided by s.
_LOG = tuple(2 / odd for odd in range(23, 1, -2))
# (atan(s) - s) / s**3 by the square of s up to the tangent of pi / 8; the same of asin up to a half.
_ATAN = (
    *(-0.01391822929102443, 0.030635704112969498, -0.04104436265755082, 0.04719395030027433, -0.05258041554297779),
    *(0.058819252531928636, -0.06666642020055166, 0.07692306736000173, -0.0909090906700999, 0.11111111110754729),
    *(-0.14285714285711518, 0.19999999999999993, -0.3333333333333333),
)
_ASIN = (
    *(0.028757851367421566, -0.014851887071247204, 0.01740087944269402, 0.005457506718640358, 0.01032281435018578),
    *(0.011479177415184906, 0.013971212973552933, 0.017352392720869973, 0.02237217294214989, 0.030381944138531247),
    *(0.04464285714635543, 0.07499999999998433, 0.16666666666666669),
)
# erf(s) / s by the square of s up to 1; e**(s**2) (1 - erf(s)) by (s - 3) / (s + 3) for s from 1 to 6.
_ERF_NEAR = (
    *(-7.795898827002142e-10, 1.3720064546777686e-08, -1.6208483801871705e-07, 1.6447424703317362e-06),
    *(-1.492473690741966e-05, 0.00012055294904839707, -0.0008548325975389692, 0.0052239776071164225),
    *(-0.02686617064323777, 0.11283791670945006, -0.37612638903183543, 1.1283791670955126),
)
_ERF_FAR = (
    *(-2.0355575642200858e-07, -2.6915157592850126e-07, 1.2459620847174093e-06, 2.1124428949403864e-06),
    *(-7.977696579644072e-06, -1.2859347351455289e-05, 6.405657794051666e-05, 4.525520140579536e-05),
    *(-0.0005970619531815352, 0.0007077464435611972, 0.004269136333077869, -0.024392499318790735),
    *(0.07166583719797331, -0.15011593650077582, 0.24560380171233093, -0.3262335600430372, 0.17900115118138996),
)
_MAX_ERF = 6.0
_THIRDS_LOW = 3.700743415417188e-17
"""What 2/3 has beyond a float64."""


def horner(x: Value, coefficients: Sequence[float]) -> Value:
    """The polynomial with these coefficients, the highest power first."""
    result = x.number(coefficients[0])
    for coefficient in coefficients[1:]:
        result = result.fma(x, coefficient)
    return result


def _whole(x: Value) -> Value:
    """A whole number of at most 31 bits as an int64; as an int32 on the way, for which processors have instructions."""
    return x.to_int32_in_range().to(types.int64)


def _power_of_two(n: Value) -> Value:
    return ((n + _BIAS) << _DIGITS).reinterpret(types.float64)


def _times_power_of_two(x: Value, n: Value) -> Value:
    """x * 2**n by two factors, so that results may be infinite, tiny or zero."""
    half = n >> 1
    return x * _power_of_two(half) * _power_of_two(n - half)


def _split_exponent(x: Value) -> tuple[Value, Value]:
    """r and a whole n for x = n ln 2 + r."""
    n = to_whole(x * (1 / math.log(2)), "rint")
    return n.fma(-_LN2_LOW, n.fma(-_LN2_HIGH, x)), n


def _exp_minus_one_near_zero(r: Value) -> Value:
    return horner(r, _EXP).fma(r * r, r)


def exp(x: Value) -> Value:
    x = minimum(maximum(x, x.number(-746.0)), x.number(710.0))
    r, n = _split_exponent(x)
    return _times_power_of_two(_exp_minus_one_near_zero(r) + 1.0, _whole(n))


def exp2(x: Value) -> Value:
    x = minimum(maximum(x, x.number(-1076.0)), x.number(1024.0))
    n = to_whole(x, "rint")
    return _times_power_of_two(_exp_minus_one_near_zero((x - n) * math.log(2)) + 1.0, _whole(n))


def expm1(x: Value) -> Value:
    """(e**r - 1) 2**n + (2**n - 1), from halves, as 2**n may be infinite where the result is not."""
    r, n = _split_exponent(minimum(maximum(x, x.number(-40.0)), x.number(710.0)))
    half = _power_of_two(_whole(n) - 1)
    y = half.fma(_exp_minus_one_near_zero(r), half - 0.5)
    return (x.intrinsic("fabs") < _TINY).choose(x, y + y)


def _exponent_and_mantissa(x: Value) -> tuple[Value, Value]:
    """e as a float64, and m in sqrt(1/2)..sqrt(2) with x = m 2**e, for positive numbers."""
    tiny = x.compare("<", _MIN_NORMAL)
    bits = tiny.choose(x * 2.0**54, x).bits() - _ROOT_OF_HALF
    mantissa = ((bits & _MANTISSA) + _ROOT_OF_HALF).reinterpret(types.float64)
    exponent = (bits >> _DIGITS).to(types.int32).to(types.float64)
    return exponent - tiny.choose(x.number(54.0), 0.0), mantissa


def _log_of_mantissa(m: Value) -> tuple[Value, Value]:
    """f and a small g with ln m = f - g, for numbers near 1."""
    f = m - 1.0
    s = f / (m + 1.0)
    square = s * s
    half = f * f * 0.5
    return f, half - s * (half + horner(square, _LOG) * square)


def _with_special_logarithms(x: Value, y: Value) -> Value:
    y = x.compare("==", 0.0).choose(x.number(-math.inf), y)
    y = (x < 0.0).choose(x.number(math.nan), y)
    return (x.is_nan() | x.compare("==", math.inf)).choose(x, y)


def log(x: Value) -> Value:
    exponent, mantissa = _exponent_and_mantissa(x)
    f, g = _log_of_mantissa(mantissa)
    return _with_special_logarithms(x, exponent.fma(_LN2_HIGH, f - exponent.fma(-_LN2_LOW, g)))


def log2(x: Value) -> Value:
    """Powers of two give whole numbers."""
    exponent, mantissa = _exponent_and_mantissa(x)
    f, g = _log_of_mantissa(mantissa)
    return _with_special_logarithms(x, (f - g).fma(1 / math.log(2), exponent))


def log10(x: Value) -> Value:
    return log(x) * (1 / math.log(10))


def tanh(x: Value) -> Value:
    power = expm1(minimum(x.intrinsic("fabs") * 2.0, x.number(40.0)))
    return (power / (power + 2.0)).intrinsic("copysign", x)


def erf(x: Value) -> Value:
    size = minimum(x.intrinsic("fabs"), x.number(_MAX_ERF))
    square = size * size
    near = size * horner(square, _ERF_NEAR)
    far = x.number(1.0) - exp(-square) * horner((size - 3.0) / (size + 3.0), _ERF_FAR)
    return (size < 1.0).choose(near, far).intrinsic("copysign", x)


def _reduced_angle(x: Value) -> tuple[Value, Value, Value]:
    """Quarter turns, and the sine and cosine of what is left of an angle without them."""
    n = to_whole(x * (2 / math.pi), "rint")
    r = x
    for part in _HALF_PI[:2]:
        r = n.fma(-part, r)
    rest = n * _HALF_PI[2]
    reduced = r - rest
    lost = n.fma(-_HALF_PI[3], (r - reduced) - rest)
    square = reduced * reduced
    sine = horner(square, _SINE).fma(square * reduced, reduced) + lost
    cosine = horner(square, _COSINE).fma(square * square, square.fma(-0.5, 1.0)) - lost * reduced
    return _whole(n), sine, cosine


def _is_large(x: Value) -> Value:
    return ~(x.intrinsic("fabs") < _MAX_ANGLE)


def _limited(x: Value) -> Value:
    """The angle, or zero for one that the library reduces."""
    return _is_large(x).choose(x.number(0.0), x)


def sine(x: Value, quarter_turns: int) -> Value:
    """sin(x + quarter_turns * pi / 2)."""
    turns, sine_of_rest, cosine = _reduced_angle(_limited(x))
    turns = turns + quarter_turns
    y = (turns & 1).compare("==", 1).choose(cosine, sine_of_rest)
    y = (turns & 2).compare("==", 2).choose(-y, y)
    y = y if quarter_turns else x.compare("==", 0.0).choose(x, y)
    return _is_large(x).any_lane(lambda: x.library_call("cos" if quarter_turns else "sin"), y)


def tan(x: Value) -> Value:
    turns, sine_of_rest, cosine = _reduced_angle(_limited(x))
    is_odd = (turns & 1).compare("==", 1)
    y = is_odd.choose(-cosine, sine_of_rest) / is_odd.choose(sine_of_rest, cosine)
    return _is_large(x).any_lane(lambda: x.library_call("tan"), x.compare("==", 0.0).choose(x, y))


def atan_near_zero(z: Value) -> Value:
    """The angle of a tangent up to that of pi / 8."""
    square = z * z
    return horner(square, _ATAN).fma(square * z, z)


def asin_up_to_half(z: Value, square: Value) -> Value:
    return horner(square, _ASIN).fma(square * z, z)


# --- powers: numbers with what they lack


def _product(a: Value, b: Value) -> tuple[Value, Value]:
    product = a.rounded_product(b)
    return product, plus_product(-product, a, b)


def _long_log(x: Value) -> tuple[Value, Value]:
    """ln x of positive normal numbers as a sum of two: 2 s + 2/3 s**3 + .. + e ln 2 with s = (m - 1) / (m + 1)."""
    exponent, m = _exponent_and_mantissa(x)
    f = m - 1.0
    above, above_low = sum_and_rest(m, m.number(1.0))
    s = f / above
    s_low = (plus_product(f, -s, above) - s * above_low) / above
    square, square_low = _product(s, s)
    square_low = (s * s_low).fma(2.0, square_low)
    # 2/3 s**2, and what the series has behind it.
    third, third_low = _product(square, square.number(2 / 3))
    third_low = square.fma(_THIRDS_LOW, square_low.fma(2 / 3, third_low))
    rest = horner(square, _LOG[:-1]) * square * square
    cube, cube_low = _product(s, third)
    cube_low = s.fma(third_low + rest, s_low.fma(third, cube_low))
    high, low = sum_and_rest(exponent * _LN2_HIGH, s + s)
    total, total_low = sum_and_rest(high, cube)
    return sum_and_rest(total, total_low + (low + exponent.fma(_LN2_LOW, (s_low + s_low) + cube_low)))


def power(x: Value, y: Value) -> Value:
    """exp(y log x) for positive normal numbers and results that are such; by the library if any lane has others."""
    is_usual = x.compare(">=", _MIN_NORMAL) & (x < math.inf) & (y.intrinsic("fabs") < 2.0**200)
    base, exponent = is_usual.choose(x, 1.0), is_usual.choose(y, 0.0)
    log_high, log_low = _long_log(base)
    product, product_low = _product(log_high, exponent)
    product_low = log_low.fma(exponent, product_low)
    is_usual = is_usual & (product.intrinsic("fabs") < 700.0)
    r, n = _split_exponent(is_usual.choose(product, 0.0))
    small = _exp_minus_one_near_zero(r) + 1.0
    found = small.fma(is_usual.choose(product_low, 0.0), small) * _power_of_two(_whole(n))
    return (~is_usual).any_lane(lambda: x.library_call("pow", y), found)
