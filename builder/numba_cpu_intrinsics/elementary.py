"""Elementary functions: polynomials for float32, accurate to about 2 units in the last place; see double_functions.py
for float64.

The polynomials are those of Cephes (exp, log) and of Eigen (tanh, erf); sine and cosine reduce in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from mlirt.builder.numba_cpu_intrinsics import double_functions as doubles
from mlirt.builder.numba_cpu_intrinsics.basic_operations import can_be_split, plus_product, to_whole
from mlirt.builder.numba_cpu_intrinsics.double_functions import horner
from mlirt.builder.numba_cpu_intrinsics.lane_value import Value, maximum, minimum
from mlirt.builder.numba_cpu_intrinsics.lanewise import as_type, binary, joint_type, unary
from mlirt.builder.numba_cpu_intrinsics.processor import has_feature
from mlirt.builder.numba_cpu_intrinsics.untyped import cgutils, intrinsic, ir, types

_ROUND_TO_INTEGER = 12582912.0  # 1.5 * 2**23: adding it leaves a float32 rounded to an integer in the low bits

_BIAS = 127  # of a float32's exponent

_TANH_LIMIT = 8.12742042541503906
# The angles that are reduced by two constants in float64; the library reduces larger ones.
_MAX_TURNS = 2.0**32
# Quotients below this limit are whole numbers in float64 once they are truncated.
_MAX_QUOTIENT = 2.0**53

# The lanes of the instruction that multiplies by powers of two, and its way to round: the current one.
_SCALED_LANES, _CURRENT_ROUNDING = 16, 4
_SCALED_WIDTHS = (16, 32, 64)


def by_width(narrow: Callable[[Value], Value], wide: Callable[[Value], Value]) -> Any:
    """The formula for float32, or the one for float64."""

    def chosen(x: Value) -> Value:
        return narrow(x) if x.element == types.float32 else wide(x)

    return unary(chosen)


def exp_minus_one_near_zero(r: Value) -> Value:
    """e**r - 1 for r up to half of ln 2 away from zero: r + r**2 times a minimax polynomial, exact to 3.2e-9 of e**r.

    Its highest and its lower coefficients are summed side by side: vectors wait for each other's steps, not for units.
    """
    square = r * r
    high, low = r.number(1.3820731e-3).fma(r, 8.3686775e-3), r.number(4.1668266e-2).fma(r, 0.16666521)
    return high.fma(square, low).fma(r, 0.49999994).fma(square, r)


def power_of_two(n: Value) -> Value:
    """2**n for integers n in -126..127."""
    return ((n + 127) << 23).reinterpret(types.float32)


def rounded_integer(rounded: Value) -> Value:
    """n as an integer, where `rounded` is n + 1.5 * 2**23."""
    return rounded.bits() - rounded.number(_ROUND_TO_INTEGER).bits()


def _times_power_of_two(x: Value, rounded: Value) -> Value:
    """x * 2**n, where `rounded` is n + 254 + 1.5 * 2**23; results may be infinite, tiny or zero.

    The lowest bits of `rounded` are the sum of the exponents of two factors, biased as those of float32 are.
    """
    both = rounded.bits()
    half = both >> 1
    return x * (half << 23).reinterpret(types.float32) * ((both - half) << 23).reinterpret(types.float32)


def _scaled(x: Value, n: Value) -> Value:
    """x * 2**n for whole numbers n, by the instruction of processors with AVX-512, vector by vector."""
    builder, number = x.builder, ir.IntType(32)
    register = ir.VectorType(x.llvm_type.element, _SCALED_LANES)
    function_type = ir.FunctionType(register, [register, register, register, ir.IntType(16), number])
    function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.x86.avx512.mask.scalef.ps.512")

    def one(start: int) -> Any:
        picked = ir.Constant(ir.VectorType(number, _SCALED_LANES), list(range(start, start + _SCALED_LANES)))
        factor, power = (builder.shuffle_vector(whole.llvm, whole.llvm, picked) for whole in (x, n))
        return builder.call(function, [factor, power, factor, ir.IntType(16)(-1), number(_CURRENT_ROUNDING)])

    parts = [one(start) for start in range(0, x.lanes, _SCALED_LANES)]
    while len(parts) > 1:
        both = ir.VectorType(number, 2 * parts[0].type.count)
        order = ir.Constant(both, list(range(both.count)))
        parts = [builder.shuffle_vector(*pair, order) for pair in zip(parts[::2], parts[1::2], strict=True)]
    return x.like(parts[0])


def _exponential(
    reduced: Callable[[Value, int], tuple[Value, Value]], wide: Callable[[Value], Value], is_added: bool = False
) -> Any:
    """A power by the polynomial of e**r times 2**n; `reduced` finds r, and n + bias + 1.5 * 2**23; `wide` for float64.

    One that `is_added` to a number near 1 has no tiny results: twice the polynomial times 2**(n - 1) is all of them.
    """

    def typed(context: Any, x: Any) -> Any:
        joint = joint_type(context, [x])
        return None if joint is None else (joint(x), codegen)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        x = as_type(Value.of(builder, operands[0], sig.args[0]), sig.return_type)
        if x.element != types.float32:
            return wide(x).llvm
        if x.lanes in _SCALED_WIDTHS and has_feature("avx512f"):
            r, rounded = reduced(x, 0)
            return _scaled(exp_minus_one_near_zero(r) + 1.0, rounded - _ROUND_TO_INTEGER).llvm
        if is_added:
            r, rounded = reduced(x, _BIAS - 1)
            return (exp_minus_one_near_zero(r).fma(2.0, 2.0) * (rounded.bits() << 23).reinterpret(types.float32)).llvm
        r, rounded = reduced(x, 2 * _BIAS)
        return _times_power_of_two(exp_minus_one_near_zero(r) + 1.0, rounded).llvm

    return intrinsic(typed)


def _reduced_exp(x: Value, bias: int) -> tuple[Value, Value]:
    return split_exponent(minimum(maximum(x, x.number(-104.0)), x.number(89.0)), bias)


def _reduced_summand(x: Value, bias: int) -> tuple[Value, Value]:
    """As `_reduced_exp`; beside a number near 1, nothing changes below a limit."""
    return split_exponent(minimum(maximum(x, x.number(-86.0)), x.number(89.0)), bias)


def split_exponent(x: Value, bias: int = 0) -> tuple[Value, Value]:
    """r and n + bias + 1.5 * 2**23 for x = n ln 2 + r; the multiple of ln 2 is taken off in two parts for accuracy."""
    rounded = x.fma(1 / math.log(2), _ROUND_TO_INTEGER + bias)
    n = rounded - (_ROUND_TO_INTEGER + bias)
    r = n.fma(-0.693359375, x)
    return n.fma(2.12194440e-4, r), rounded


def _reduced_exp2(x: Value, bias: int) -> tuple[Value, Value]:
    x = minimum(maximum(x, x.number(-150.0)), x.number(128.0))
    rounded = x + (_ROUND_TO_INTEGER + bias)
    return (x - (rounded - (_ROUND_TO_INTEGER + bias))) * math.log(2), rounded


def exponent_and_mantissa(x: Value) -> tuple[Value, Value]:
    """e as an int32 and m in sqrt(1/2)..sqrt(2) with x = m 2**e, for positive normal numbers."""
    bits = x.bits() - 0x3F3504F3
    return bits >> 23, ((bits & 0x7FFFFF) + 0x3F3504F3).reinterpret(types.float32)


def log_float32(x: Value) -> Value:
    """ln x: the exponent is split off such that the rest lies in sqrt(1/2)..sqrt(2)."""
    tiny = x.compare("<", 1.17549435e-38)
    scaled = tiny.choose(x * 8388608.0, x)
    power, mantissa = exponent_and_mantissa(scaled)
    exponent = power.to(types.float32) - tiny.choose(x.number(23.0), 0.0)
    z = mantissa - 1.0
    p = horner(
        z,
        (
            *(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1),
            *(-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
        ),
    )
    square = z * z
    y = exponent.fma(-2.12194440e-4, p * z * square)
    y = square.fma(-0.5, y) + z
    y = exponent.fma(0.693359375, y)
    y = x.compare("==", 0.0).choose(x.number(-math.inf), y)
    y = (x < 0.0).choose(x.number(math.nan), y)
    unchanged = x.is_nan() | x.compare("==", math.inf)
    return unchanged.choose(x, y)


def _tanh_float32(x: Value) -> Value:
    # Up to the limit the quotient is at most 1, and there it is 1.
    limited = minimum(maximum(x, x.number(-_TANH_LIMIT)), x.number(_TANH_LIMIT))
    square = limited * limited
    p = horner(
        square,
        (
            *(-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08),
            *(1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03),
        ),
    )
    q = horner(square, (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03))
    small = x.intrinsic("fabs") < 0.0004
    return small.choose(x, limited * p / q)


def _erf_float32(x: Value) -> Value:
    limited = minimum(maximum(x, x.number(-4.0)), x.number(4.0))
    square = limited * limited
    p = horner(
        square,
        (
            *(-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05),
            *(-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02),
        ),
    )
    q = horner(
        square,
        (
            *(-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03),
            -1.42647390514189e-02,
        ),
    )
    return limited * p / q


def _sine(x: Value, quarter_turns: int) -> Value:
    """sin(x + quarter_turns * pi / 2); by the library if any angle is so large that float64 does not tell its turns."""
    is_large = ~(x.intrinsic("fabs") < _MAX_TURNS)
    name = "cos" if quarter_turns else "sin"
    large = x.to(types.float64).library_call
    return is_large.any_lane(lambda: large(name).to(types.float32), _sine_of_few_turns(x, quarter_turns))


def _sine_of_few_turns(x: Value, quarter_turns: int) -> Value:
    """In float64: the nearest multiple of pi / 2 picks sine or cosine, and the sign."""
    turns, sine, cosine = _reduced_angle(x)
    turns = turns + quarter_turns
    y = (turns & 1).compare("==", 1).choose(cosine, sine)
    y = (turns & 2).compare("==", 2).choose(-y, y).to(types.float32)
    return y if quarter_turns else x.compare("==", 0.0).choose(x, y)  # the sine of -0.0 is that


def _tangent(x: Value) -> Value:
    """The quotient of sine and cosine in float64; by the library where `_sine` asks it."""
    is_large = ~(x.intrinsic("fabs") < _MAX_TURNS)
    turns, sine, cosine = _reduced_angle(x)
    is_odd = (turns & 1).compare("==", 1)
    y = (is_odd.choose(-cosine, sine) / is_odd.choose(sine, cosine)).to(types.float32)
    large = x.to(types.float64).library_call
    return is_large.any_lane(lambda: large("tan").to(types.float32), x.compare("==", 0.0).choose(x, y))


def _reduced_angle(x: Value) -> tuple[Value, Value, Value]:
    """Quarter turns, and the sine and cosine of what is left of an angle without them, in float64."""
    wide = x.to(types.float64)
    n = to_whole(wide * (2 / math.pi), "rint")
    r = n.fma(-6.123233995736766e-17, plus_product(wide, n, -math.pi / 2))
    square = r * r
    sine = horner(square, (2.755731922e-6, -1.98412698e-4, 8.33333333e-3, -0.16666666666666666)).fma(square * r, r)
    cosine = horner(square, (-2.755731922e-7, 2.48015873e-5, -1.3888888888e-3, 0.041666666666666664, -0.5)).fma(
        square, 1.0
    )
    return n.to(types.int64), sine, cosine


def _remainder(a: Value, b: Value) -> Value:
    """What C's fmod gives: from the quotient in float64, or by the library if any quotient is too long for that."""
    x, y = a.to(types.float64), b.to(types.float64)
    quotient = to_whole(x / y, "trunc")
    magnitude = quotient.intrinsic("fabs")
    rest = plus_product(x, -quotient, y)
    # A quotient that was rounded up to the next whole number is one too large.
    one_less = (magnitude - 1.0).intrinsic("copysign", quotient)
    too_large = (rest.compare("<", 0.0) & x.compare(">", 0.0)) | (rest.compare(">", 0.0) & x.compare("<", 0.0))
    rest = too_large.choose(plus_product(x, -one_less, y), rest).intrinsic("copysign", x)
    is_simple = (magnitude < _MAX_QUOTIENT) & can_be_split(y)
    return (~is_simple).any_lane(lambda: x.library_call("fmod", y), rest).to(a.element)


def _product_of_powers(x: Value, quarters: int) -> Value:
    """x ** (quarters / 4): the binary digits of the exponent say which squares and roots of x are multiplied."""
    factors: list[Value] = []
    root = x.intrinsic("sqrt")
    if quarters & 1:
        factors.append(root.intrinsic("sqrt"))
    if quarters & 2:
        factors.append(root)
    square = x
    for digit in range(2, quarters.bit_length()):
        if quarters >> digit & 1:
            factors.append(square)
        square = square * square
    result = reduce(lambda a, b: a * b, factors)
    if quarters % 4 == 0:
        return result
    # Unlike roots, powers are numbers for minus infinity, and have no sign for minus zero.
    return x.compare("==", -math.inf).choose(x.number(math.inf), result + 0.0)


def _cube_root(x: Value) -> Value:
    """Steps of third order from a third of the exponent; each has three times the digits of the one before."""
    is_single = x.element == types.float32
    size = x.intrinsic("fabs")
    limit = 2.0**100 if is_single else 2.0**1000
    tiny, huge = size < 4.0 / limit, size > limit
    scaled = tiny.choose(size * 2.0**54, huge.choose(size * 2.0**-54, size))
    bits = scaled.bits()
    bias = (2 * _BIAS << 23) // 3 if is_single else (2 * 1023 << 52) // 3
    root = (bits / bits.number(3) + bias).reinterpret(x.element)
    for _ in range(3):
        cube = root * root * root
        root = root * ((cube + scaled * 2.0) / (cube * 2.0 + scaled))
    root = tiny.choose(root * 2.0**-18, huge.choose(root * 2.0**18, root)).intrinsic("copysign", x)
    return (size < math.inf).choose(x.compare("==", 0.0).choose(x, root), x)


def _integer_power(x: Value, y: Value) -> Value:
    """x ** y by repeated squaring, all 64 bits of y; a negative y gives 0 where x is neither 1 nor -1."""
    result, base, exponent = x.number(1), x, y
    for _ in range(y.width - 1):
        result = (exponent & 1).compare("==", 1).choose(result * base, result)
        base, exponent = base * base, exponent >> 1
    odd = (y & 1).compare("==", 1)
    inverse = x.compare("==", 1).choose(x, x.compare("==", -1).choose(odd.choose(x, x.number(1)), 0))
    return (y < 0).choose(inverse, result)


exp = _exponential(_reduced_exp, doubles.exp)
exp2 = _exponential(_reduced_exp2, doubles.exp2)
exp_as_summand = _exponential(_reduced_summand, doubles.exp, is_added=True)
log = by_width(log_float32, doubles.log)
log2 = by_width(lambda x: log_float32(x) * (1 / math.log(2)), doubles.log2)
log10 = by_width(lambda x: log_float32(x) * (1 / math.log(10)), doubles.log10)
tanh = by_width(_tanh_float32, doubles.tanh)
erf = by_width(_erf_float32, doubles.erf)
sin = by_width(lambda x: _sine(x, 0), lambda x: doubles.sine(x, 0))
cos = by_width(lambda x: _sine(x, 1), lambda x: doubles.sine(x, 1))
sqrt = unary(lambda x: x.intrinsic("sqrt"))
rsqrt = unary(lambda x: x.number(1.0) / x.intrinsic("sqrt"))
cbrt = unary(_cube_root)
tan = by_width(_tangent, doubles.tan)
remainder = binary(_remainder)
integer_power = binary(_integer_power)


@intrinsic(prefer_literal=True)
def power_of_quarters(context: Any, x: Any, quarters: Any) -> Any:
    """`x ** (quarters / 4)` for a number that is known: no logarithm is needed."""
    joint, number = joint_type(context, [x]), quarters.literal_value

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        result = _product_of_powers(Value.of(builder, operands[0], joint), abs(number))
        return (result if number > 0 else result.number(1.0) / result).llvm

    return joint(x, quarters), codegen
