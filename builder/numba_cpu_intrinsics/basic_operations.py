"""Multiplication with addition and rounding to whole numbers on processors without instructions for them: bit for bit.

LLVM calls a function of the mathematics library for each lane there.
"""

from __future__ import annotations

from mlirt.builder.numba_cpu_intrinsics.lane_value import Value
from mlirt.builder.numba_cpu_intrinsics.processor import has_fused_operations, has_rounding
from mlirt.builder.numba_cpu_intrinsics.untyped import types

_SPLITTER = 134217729.0  # 2**27 + 1: a product with it splits the digits of a float64 into halves
_SAFE = 2.0**900
"""Factors up to this size, and from its inverse on, can be split, and the error of their product is a float64."""


def exact_fma(a: Value, b: Value, c: Value) -> Value:
    """a b + c, rounded once."""
    if has_fused_operations():
        return a.intrinsic("fma", b, c)
    if a.element == types.float32:
        x, y, z = (one.to(types.float64) for one in (a, b, c))
        return _to_odd(x * y, z).to(types.float32)
    product, error = _product(a, b)
    low, lower = sum_and_rest(c, error)
    high, middle = sum_and_rest(product, low)
    found = high + _to_odd(lower, middle)
    size = product.intrinsic("fabs")
    is_usual = can_be_split(a) & can_be_split(b) & (c.intrinsic("fabs") < _SAFE) & (size < _SAFE)
    is_usual = is_usual & ((size > 1 / _SAFE) | a.compare("==", 0.0) | b.compare("==", 0.0))
    return (~is_usual).any_lane(lambda: a.intrinsic("fma", b, c), found)


def sum_and_rest(a: Value, b: Value) -> tuple[Value, Value]:
    """The rounded sum, and what it lacks."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product(a: Value, b: Value) -> tuple[Value, Value]:
    """The rounded product, and what it lacks; for factors within `can_be_split`."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _to_odd(a: Value, b: Value) -> Value:
    """a + b for float64: a sum that is not exact gets an odd last digit.

    So rounding it again gives what rounding once would (Boldo and Melquiond, Emulation of FMA, 2008).
    """
    total, error = sum_and_rest(a, b)
    bits = total.bits()
    is_outward = (error.bits() ^ bits).compare(">=", 0)
    odd = (bits + is_outward.choose(bits.number(1), bits.number(-1))).reinterpret(types.float64)
    is_exact = ~(error.compare("!=", 0.0)) | (bits & 1).compare("==", 1) | error.is_nan()
    return is_exact.choose(total, odd)


def plus_product(x: Value, a: Value, b: Value | float) -> Value:
    """x + a b, for float64, where the sum of x and the rounded product is exact, as where little is left of x.

    Factors are within `can_be_split`.
    """
    if has_fused_operations():
        return a.fma(b, x)
    factor = b if isinstance(b, Value) else a.number(b)
    product, error = _product(a, factor)
    return (x + product) + error


def can_be_split(x: Value) -> Value:
    """Whether `plus_product` may have it as a factor: all numbers, where it is one instruction."""
    size = x.intrinsic("fabs")
    if has_fused_operations():
        return size.compare("<", float("inf"))
    return (size.compare("<", _SAFE) & size.compare(">", 1 / _SAFE)) | size.compare("==", 0.0)


def _halves(x: Value) -> tuple[Value, Value]:
    scaled = x * _SPLITTER
    high = scaled - (scaled - x)
    return high, x - high


def to_whole(x: Value, name: str) -> Value:
    """`floor`, `ceil`, `trunc`, `round` (ties away from zero), `roundeven` or `rint` of each lane."""
    return x.intrinsic(name) if has_rounding() else _ROUNDINGS[name](x).intrinsic("copysign", x)


def _even(x: Value) -> Value:
    """To the nearest, ties to even: numbers from 2**23 (2**52) on are whole, and adding that leaves whole ones."""
    limit = 2.0**23 if x.element == types.float32 else 2.0**52
    size = x.intrinsic("fabs")
    whole = ((size + limit) - limit).intrinsic("copysign", x)
    return size.compare("<", limit).choose(whole, x)


def _floor(x: Value) -> Value:
    whole = _even(x)
    return whole.compare(">", x).choose(whole - 1.0, whole)


def _ceil(x: Value) -> Value:
    whole = _even(x)
    return whole.compare("<", x).choose(whole + 1.0, whole)


def _trunc(x: Value) -> Value:
    return _floor(x.intrinsic("fabs"))


def _away(x: Value) -> Value:
    """What lies just below a half is not rounded up, as the sum with a half would be."""
    size = x.intrinsic("fabs")
    whole = _floor(size)
    return (size - whole).compare(">=", 0.5).choose(whole + 1.0, whole)


_ROUNDINGS = {"floor": _floor, "ceil": _ceil, "trunc": _trunc, "round": _away, "roundeven": _even, "rint": _even}
