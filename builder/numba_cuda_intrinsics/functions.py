"""Elementary functions of CUDA's libdevice, in single and double precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import F32, I32, ir, ptx
from mlirt.builder.numba_cuda_intrinsics.untyped import intrinsic, types


def _call(builder: Any, function: str, values: Sequence[Any]) -> Any:
    """Call `__nv_<function>f` or `__nv_<function>`, by the type of the first operand."""
    kind = ir.FunctionType(values[0].type, [value.type for value in values])
    name = f"__nv_{function}{'f' if values[0].type == F32 else ''}"
    found = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(found, values)


def _float_type(x: Any) -> Any:
    plain = types.unliteral(x)
    return plain if plain in (types.float32, types.float64) else None


def _unary(function: str) -> Any:
    @intrinsic
    def typed(context: Any, x: Any) -> Any:
        type_ = _float_type(x)

        def codegen(target: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
            return _call(builder, function, values)

        return None if type_ is None else (type_(type_), codegen)

    return typed


def _binary(function: str) -> Any:
    @intrinsic
    def typed(context: Any, x: Any, y: Any) -> Any:
        type_ = _float_type(x)

        def codegen(target: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
            return _call(builder, function, values)

        return None if type_ is None or _float_type(y) != type_ else (type_(type_, type_), codegen)

    return typed


exp, exp2, expm1 = _unary("exp"), _unary("exp2"), _unary("expm1")
log, log2, log10, log1p = _unary("log"), _unary("log2"), _unary("log10"), _unary("log1p")
sqrt, rsqrt, cbrt, erf = _unary("sqrt"), _unary("rsqrt"), _unary("cbrt"), _unary("erf")
sin, cos, tan = _unary("sin"), _unary("cos"), _unary("tan")
asin, acos, atan, atan2 = _unary("asin"), _unary("acos"), _unary("atan"), _binary("atan2")
sinh, cosh, tanh = _unary("sinh"), _unary("cosh"), _unary("tanh")
asinh, acosh, atanh = _unary("asinh"), _unary("acosh"), _unary("atanh")
ceil, floor, trunc = _unary("ceil"), _unary("floor"), _unary("trunc")
round, roundeven = _unary("round"), _unary("rint")
power, copysign = _binary("pow"), _binary("copysign")
remainder = _binary("fmod")


@intrinsic
def power_of_half(context: Any, x: Any) -> Any:
    """`x ** 0.5`: the square root, but infinity for minus infinity, and without a sign for -0.0."""
    type_ = _float_type(x)

    def codegen(target: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        (value,) = values
        infinity = value.type(float("inf"))
        root = builder.fadd(_call(builder, "sqrt", values), value.type(0.0))
        return builder.select(builder.fcmp_ordered("==", value, value.type(float("-inf"))), infinity, root)

    return None if type_ is None else (type_(type_), codegen)


# A quotient of polynomials in x**2, lowest first, times x: the best in the relative error up to the limit.
ERF_LIMIT = 3.92
ERF_ABOVE = (1.1283791, 0.19991343, 0.050571825, 0.0037011320, 1.4183871e-4, -1.9577874e-6, 1.9924441e-8)
ERF_BELOW = (1.0, 0.51050031, 0.11499380, 0.014352239, 9.5592241e-4)


@intrinsic
def erf_closely(context: Any, x: Any) -> Any:
    """The error function for results of half precision: of float32 numbers, without branches, off by at most 4e-7."""
    type_ = _float_type(x)

    def codegen(target: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        (value,) = values
        return _erf_closely(builder, value) if value.type == F32 else _call(builder, "erf", values)

    return None if type_ is None else (type_(type_), codegen)


def _erf_closely(builder: Any, x: Any) -> Any:
    def each(text: str, *operands: Any) -> Any:
        return ptx(builder, text, [F32], operands, pure=True)[0]

    x = each("max.NaN.f32 $0, $1, $2;", x, F32(-ERF_LIMIT))
    x = each("min.NaN.f32 $0, $1, $2;", x, F32(ERF_LIMIT))
    square = builder.fmul(x, x)
    above = builder.fmul(_polynomial(builder, ERF_ABOVE, square), x)
    below = each("rcp.approx.ftz.f32 $0, $1;", _polynomial(builder, ERF_BELOW, square))
    return builder.fmul(above, below)


def _fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return ptx(builder, "fma.rn.f32 $0, $1, $2, $3;", [F32], [a, b, c], pure=True)[0]


def _polynomial(builder: Any, coefficients: Sequence[float], at: Any) -> Any:
    """The sum of coefficients, lowest first, times powers."""
    highest_first = [F32(one) for one in reversed(coefficients)]
    return reduce(lambda so_far, one: _fma(builder, so_far, at, one), highest_first)


LOG2_OF_E = 1.44269504


def _by_powers_of_two(exact: str, formula: Callable[[Any, Any], Any]) -> Any:
    """A function by the unit that raises 2 to a power, without branches: of float32 numbers, off by at most 3e-7."""

    @intrinsic
    def typed(context: Any, x: Any) -> Any:
        type_ = _float_type(x)

        def codegen(target: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
            (value,) = values
            return formula(builder, value) if value.type == F32 else _call(builder, exact, values)

        return None if type_ is None else (type_(type_), codegen)

    return typed


def _power_of_two(builder: Any, x: Any, factor: float) -> Any:
    scaled = builder.fmul(x, F32(factor))
    return ptx(builder, "ex2.approx.ftz.f32 $0, $1;", [F32], [scaled], pure=True)[0]


def _tanh_closely(builder: Any, x: Any) -> Any:
    """1 - 2 / (exp(2 x) + 1)."""
    below = builder.fadd(_power_of_two(builder, x, 2 * LOG2_OF_E), F32(1.0))
    part = ptx(builder, "rcp.approx.ftz.f32 $0, $1;", [F32], [below], pure=True)[0]
    return ptx(builder, "fma.rn.f32 $0, $1, $2, $3;", [F32], [part, F32(-2.0), F32(1.0)], pure=True)[0]


# Coefficients of the powers from x**2 on, of (exp(x) - 1) where |x| is below the limit.
EXPM1_LIMIT = 0.25
EXPM1_BELOW = (1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720)


def _expm1_closely(builder: Any, x: Any) -> Any:
    """x + x**2 / 2 + .. near 0, else the power less 1."""
    far = builder.fsub(_power_of_two(builder, x, LOG2_OF_E), F32(1.0))
    near = _fma(builder, builder.fmul(_polynomial(builder, EXPM1_BELOW, x), x), x, x)
    return builder.select(_is_below(builder, x, EXPM1_LIMIT), near, far)


# Coefficients of the even powers of s = x / (2 + x), of log(1 + x) / (2 s) where |x| is below the limit.
LOG1P_LIMIT = 0.5
LOG1P_BELOW = (1.0, 1 / 3, 1 / 5, 1 / 7, 1 / 9, 1 / 11)
LOG_OF_2 = 0.693147181


def _log1p_closely(builder: Any, x: Any) -> Any:
    """A series of x / (2 + x) near 0, else the logarithm of 1 + x."""
    one_more, two_more = builder.fadd(x, F32(1.0)), builder.fadd(x, F32(2.0))
    far = builder.fmul(ptx(builder, "lg2.approx.ftz.f32 $0, $1;", [F32], [one_more], pure=True)[0], F32(LOG_OF_2))
    part = builder.fmul(x, ptx(builder, "rcp.approx.ftz.f32 $0, $1;", [F32], [two_more], pure=True)[0])
    near = builder.fmul(_polynomial(builder, LOG1P_BELOW, builder.fmul(part, part)), builder.fadd(part, part))
    return builder.select(_is_below(builder, x, LOG1P_LIMIT), near, far)


def _is_below(builder: Any, x: Any, limit: float) -> Any:
    magnitude = ptx(builder, "abs.f32 $0, $1;", [F32], [x], pure=True)[0]
    return builder.fcmp_ordered("<", magnitude, F32(limit))


# The error of the power is relative, and grows with its exponent.
exp_closely = _by_powers_of_two("exp", lambda builder, x: _power_of_two(builder, x, LOG2_OF_E))
tanh_closely = _by_powers_of_two("tanh", _tanh_closely)
expm1_closely, log1p_closely = _by_powers_of_two("expm1", _expm1_closely), _by_powers_of_two("log1p", _log1p_closely)


@intrinsic
def power_of_integer(context: Any, x: Any, n: Any) -> Any:
    """`x ** n` of a floating-point number and an integer."""
    type_ = _float_type(x)

    def codegen(target: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        value = values[0]
        exponent = target.cast(builder, values[1], signature.args[1], types.int32)
        name = "__nv_powif" if value.type == F32 else "__nv_powi"
        kind = ir.FunctionType(value.type, [value.type, I32])
        found = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        return builder.call(found, [value, exponent])

    return None if type_ is None else (type_(type_, types.unliteral(n)), codegen)
