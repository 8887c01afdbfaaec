"""Special functions in double precision: the error function's relatives, gamma functions, Bessel functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""B2, B4, .., for the series of Stirling and of Euler and Maclaurin."""
_SHIFT = 12
"""The gamma functions' series are taken of numbers that are no smaller."""
_ASYMPTOTIC_FROM = 20.0
"""From here on Bessel functions are their asymptotic series, below the trapezoidal rule of their integrals."""
_ANGLES = 64
# M. Giles, "Approximating the erfinv function": two polynomials of the logarithm of 1 - x^2.
_INVERSE_NEAR = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip
_INVERSE_FAR = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
    1.00167406, 2.83297682,
)  # fmt: skip


class _Doubles:
    """Arithmetic on double-precision values and numbers, in the notation of formulas."""

    def __init__(self, net: Network) -> None:
        self._net = net

    def of(self, kind: str, *parts: Value | float) -> Value:
        """A binary layer, or one of several folded from the left."""
        return reduce(lambda one, other: layers.binary(self._net, kind, one, other), map(self._value, parts))

    def map(self, kind: str, x: Value) -> Value:
        return layers.unary(self._net, kind, x)

    def add(self, *parts: Value | float) -> Value:
        return self.of("sum", *parts)

    def times(self, *parts: Value | float) -> Value:
        return self.of("prod", *parts)

    def over(self, one: Value | float, other: Value | float) -> Value:
        return self.of("div", one, other)

    def less(self, one: Value | float, other: Value | float) -> Value:
        return self.of("sub", one, other)

    def pick(self, condition: Value, one: Value | float, other: Value | float) -> Value:
        return layers.select(self._net, *layers.aligned(self._net, [condition, self._value(one), self._value(other)]))

    def is_below(self, x: Value, limit: Value | float) -> Value:
        return self.of("less", x, limit)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """By Horner's rule, the coefficient of the highest power first."""
        found: Value | float = coefficients[0]
        for one in coefficients[1:]:
            found = self.add(self.times(found, x), one)
        return self._value(found)

    def _value(self, number: Value | float) -> Value:
        return number if isinstance(number, Value) else self._net.constant(np.array(number, np.float64))


def _given(net: Network, call: Call, name: str = "self") -> Value:
    return layers.cast(net, call.operand(name, call.element), "float64")


def _in_type(net: Network, call: Call, x: Value) -> Value:
    return layers.cast(net, x, call.element)


def _scaled_complement(d: _Doubles, x: Value) -> Value:
    """exp(x^2) erfc(x) of numbers that are not negative: near 0 by erf, from 2 on by Laplace's continued fraction."""
    near = d.times(d.map("exp", d.times(x, x)), d.less(1, d.map("erf", x)))
    far = d.of("max", x, 2)
    fraction: Value = far
    for k in range(28, 0, -1):
        fraction = d.add(far, d.over(k / 2, fraction))
    return d.pick(d.is_below(x, 2), near, d.over(1 / math.sqrt(math.pi), fraction))


@aten_op("erfc.default", "special_erfcx.default")
def complementary_error(net: Network, call: Call) -> Value:
    d, x = _Doubles(net), _given(net, call)
    scaled, negative = _scaled_complement(d, d.map("abs", x)), d.is_below(x, 0)
    if "erfcx" in call.operator:
        mirrored = d.less(d.times(2, d.map("exp", d.times(x, x))), scaled)
        return _in_type(net, call, d.pick(negative, mirrored, scaled))
    positive = d.times(d.map("exp", d.map("neg", d.times(x, x))), scaled)
    return _in_type(net, call, d.pick(negative, d.less(2, positive), positive))


@aten_op("erfinv.default", "special_ndtri.default")
def inverse_error(net: Network, call: Call) -> Value:
    """The inverse of erf by two polynomials and two steps of Newton's; normal quantiles are it of 2 p - 1."""
    d, x = _Doubles(net), _given(net, call)
    is_quantile = "ndtri" in call.operator
    y = d.less(d.times(2, x), 1) if is_quantile else x
    w = d.map("neg", d.map("log", d.times(d.less(1, y), d.add(1, y))))
    near = d.polynomial(d.less(w, 2.5), _INVERSE_NEAR)
    far = d.polynomial(d.less(d.map("sqrt", w), 3), _INVERSE_FAR)
    found = d.times(y, d.pick(d.is_below(w, 5), near, far))
    for _ in range(2):
        slope = d.times(2 / math.sqrt(math.pi), d.map("exp", d.map("neg", d.times(found, found))))
        found = d.less(found, d.over(d.less(d.map("erf", found), y), slope))
    inside = d.is_below(d.map("abs", y), 1)
    border = d.pick(d.of("equal", d.map("abs", y), 1), d.over(y, 0), math.nan)
    found = d.pick(inside, found, border)
    return _in_type(net, call, d.times(math.sqrt(2), found) if is_quantile else found)


@aten_op("lgamma.default")
def log_gamma(net: Network, call: Call) -> Value:
    """Stirling's series; below a half log(pi / |sin(pi x)|) less that of 1 - x."""
    d, x = _Doubles(net), _given(net, call)
    mirrors = d.is_below(x, 0.5)
    z = d.pick(mirrors, d.less(1, x), x)
    is_small = d.is_below(z, _SHIFT)
    y = d.pick(is_small, d.add(z, _SHIFT), z)
    small = d.of("min", z, _SHIFT)
    product = d.times(*[d.add(small, k) for k in range(_SHIFT)])
    series = [d.times(b / (2 * k * (2 * k - 1)), d.of("pow", y, 1.0 - 2 * k)) for k, b in enumerate(_BERNOULLI[:6], 1)]
    main = d.less(d.times(d.less(y, 0.5), d.map("log", y)), y)
    stirling = d.add(main, 0.5 * math.log(2 * math.pi), *series)
    found = d.less(stirling, d.pick(is_small, d.map("log", product), 0))
    found = d.pick(d.map("isinf", z), math.inf, found)
    sine = d.map("abs", d.map("sin", d.times(math.pi, d.less(x, d.map("round", x)))))
    other = d.less(d.map("log", d.over(math.pi, sine)), found)
    found = d.pick(mirrors, other, found)
    return _in_type(net, call, d.pick(d.map("isinf", x), math.inf, found))


@aten_op("digamma.default", "polygamma.default")
def derivative_of_log_gamma(net: Network, call: Call) -> Value:
    """Of order n: the series of Euler and Maclaurin; below a half by the derivatives of pi cot(pi x)."""
    d, x = _Doubles(net), _given(net, call)
    n = call.integer("n") if "n" in call.arguments else 0
    mirrors = d.is_below(x, 0.5)
    found = _polygamma(d, n, d.pick(mirrors, d.less(1, x), x))
    angle = d.times(math.pi, d.less(x, d.map("round", x)))
    cotangent = d.over(d.map("cos", angle), d.map("sin", angle))
    reflected = d.times(math.pi, d.polynomial(cotangent, _cotangent_derivative(n)))
    other = d.less(d.times((-1.0) ** n, found), reflected)
    found = d.pick(mirrors, other, found)
    if n == 0:  # there is no limit at -1, -2, ..
        is_whole = d.of("equal", x, d.map("round", x))
        below = layers.binary(net, "and", *layers.aligned(net, [is_whole, d.is_below(x, 0)]))
        found = d.pick(below, math.nan, found)
    return _in_type(net, call, found)


def _cotangent_derivative(n: int) -> list[float]:
    """The n-th derivative of cot(pi x) as a polynomial of cot(pi x), the highest power first."""
    found = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(n):
        found = found.deriv() * np.polynomial.Polynomial([-math.pi, 0.0, -math.pi])
    return [float(one) for one in found.coef[::-1]]


def _polygamma(d: _Doubles, n: int, x: Value) -> Value:
    """(-1)^(n+1) n! zeta(n + 1, x), or the logarithm's series for n = 0, of numbers from a half on."""
    y = d.add(x, _SHIFT)
    steps = d.add(*[d.of("pow", d.add(x, k), -1.0 - n) for k in range(_SHIFT)])
    if n == 0:
        series = [d.times(-b / (2 * k), d.of("pow", y, -2.0 * k)) for k, b in enumerate(_BERNOULLI, 1)]
        return d.less(d.add(d.map("log", y), d.over(-0.5, y), *series), steps)
    series = [
        d.times(b * math.factorial(2 * k + n - 1) / math.factorial(2 * k), d.of("pow", y, float(-2 * k - n)))
        for k, b in enumerate(_BERNOULLI, 1)
    ]
    head = d.times(float(math.factorial(n - 1)), d.of("pow", y, float(-n)))
    half = d.times(math.factorial(n) / 2, d.of("pow", y, -1.0 - n))
    total = d.add(head, half, d.times(float(math.factorial(n)), steps), *series)
    return d.times((-1.0) ** (n + 1), total)


@aten_op(
    *(f"special_{name}.default" for name in ("i0e", "i1", "i1e", "modified_bessel_i0", "modified_bessel_i1")),
    "i0.default",
)
def modified_bessel(net: Network, call: Call) -> Value:
    """exp(-|x|) times the mean of exp(x cos t) cos(order t) over the circle; far out the asymptotic series."""
    d, x = _Doubles(net), _given(net, call)
    name = call.operator.split(".")[1]
    order = int("i1" in name)
    size = d.map("abs", x)
    near = d.of("min", size, _ASYMPTOTIC_FROM)
    terms: list[Value] = []
    for k in range(_ANGLES + 1):
        cosine = math.cos(math.pi * k / _ANGLES)
        weight = (0.5 if k in (0, _ANGLES) else 1.0) * (cosine if order else 1.0) / _ANGLES
        terms.append(d.times(weight, d.map("exp", d.times(cosine - 1, near))))
    far = d.of("max", size, _ASYMPTOTIC_FROM)
    root = d.map("sqrt", d.times(2 * math.pi, far))
    distant = d.over(d.polynomial(d.over(1, far), _asymptotic(order)), root)
    found = d.pick(d.is_below(size, _ASYMPTOTIC_FROM), d.add(*terms), distant)
    found = d.pick(d.is_below(x, 0), d.map("neg", found), found) if order else found
    return _in_type(net, call, found if name.endswith("e") else d.times(found, d.map("exp", size)))


def _asymptotic(order: int) -> list[float]:
    """The coefficients of 1 / x in the series of a modified Bessel function, the highest power first."""
    found = [1.0]
    for k in range(1, 12):
        found.append(-found[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    return found[::-1]


@aten_op("special_spherical_bessel_j0.default")
def spherical_bessel(net: Network, call: Call) -> Value:
    """sin(x) / x, which is 1 at 0."""
    d, x = _Doubles(net), _given(net, call, "x")
    is_zero = d.of("equal", x, 0)
    found = d.over(d.map("sin", x), d.pick(is_zero, 1, x))
    return _in_type(net, call, d.pick(d.map("isinf", x), 0, d.pick(is_zero, 1, found)))


@aten_op("hypot.default")
def hypotenuse(net: Network, call: Call) -> Value:
    d, a, b = _Doubles(net), _given(net, call), _given(net, call, "other")
    sides = [d.map("abs", one) for one in layers.aligned(net, [a, b])]
    longer, shorter = d.of("max", *sides), d.of("min", *sides)
    ratio = d.over(shorter, d.pick(d.of("equal", longer, 0), 1, longer))
    found = d.times(longer, d.map("sqrt", d.add(1, d.times(ratio, ratio))))
    for side in sides:
        found = d.pick(d.map("isinf", side), math.inf, found)  # be the other one not-a-number
    return _in_type(net, call, found)


@aten_op("ldexp.Tensor")
def times_power_of_two(net: Network, call: Call) -> Value:
    d = _Doubles(net)
    return _in_type(net, call, d.times(_given(net, call), d.of("pow", 2, _given(net, call, "other"))))


@aten_op("frexp.Tensor")
def mantissa_and_exponent(net: Network, call: Call) -> Sequence[Value]:
    """x = m 2^e with half <= |m| < 1; the logarithm may be one off each way, which the mantissa tells."""
    d, x = _Doubles(net), _given(net, call)
    size = d.map("abs", x)
    has = d.pick(d.of("greater", size, 0), d.pick(d.map("isinf", x), 1, size), 1)
    exponent = d.map("floor", d.times(d.map("log", has), 1 / math.log(2)))
    mantissa = d.over(has, d.of("pow", 2, exponent))
    for limit, step in ((1.0, 1.0), (1.0, 1.0), (0.5, -1.0)):
        is_off = d.is_below(mantissa, limit) if step < 0 else layers.unary(net, "not", d.is_below(mantissa, limit))
        mantissa = d.pick(is_off, d.times(mantissa, 2.0**-step), mantissa)
        exponent = d.pick(is_off, d.add(exponent, step), exponent)
    is_plain = d.of("equal", has, size)
    signed = d.pick(d.is_below(x, 0), d.map("neg", mantissa), mantissa)
    values = d.pick(is_plain, signed, x)
    return [_in_type(net, call, values), layers.cast(net, d.pick(is_plain, exponent, 0), "int32")]
