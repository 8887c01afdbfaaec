"""Activations as scalar formulas that stay finite and keep not-a-number, as their NumPy meaning does."""

from __future__ import annotations

import math as numbers
from collections.abc import Callable, Sequence

from xdsl.dialects import math
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.scalar_builder import Scalars
from mlirt.dialects.rational_functions import SIGMOID, TANH, RationalFunction
from mlirt.dialects.trt.activation import ActivationKind

Activation = Callable[[Scalars, SSAValue, float, float], SSAValue]


def _affine(s: Scalars, x: SSAValue, factor: float, offset: float) -> SSAValue:
    return s.add(s.mul(x, s.constant(factor)), s.constant(offset))


def _clip(s: Scalars, x: SSAValue, low: float, high: float) -> SSAValue:
    if low > -numbers.inf:
        x = s.max(x, s.constant(low))
    return s.min(x, s.constant(high)) if high < numbers.inf else x


def sigmoid(s: Scalars, x: SSAValue) -> SSAValue:
    """1 / (1 + exp(-x)); exp overflows to infinity, whose reciprocal is the right limit 0."""
    one = s.constant(1)
    return s.div(one, s.add(one, s.function(math.ExpOp, s.neg(x))))


def softplus(s: Scalars, x: SSAValue) -> SSAValue:
    """log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)), which never overflows."""
    tail = s.function(math.Log1pOp, s.function(math.ExpOp, s.neg(s.abs(x))))
    return s.add(s.max(x, s.constant(0)), tail)


def _exponential_below_zero(s: Scalars, x: SSAValue, factor: float) -> SSAValue:
    below = s.mul(s.constant(factor), s.function(math.ExpM1Op, s.min(x, s.constant(0))))
    return s.select(s.compare("ge", x, s.constant(0)), x, below)


def _leaky_relu(s: Scalars, x: SSAValue, alpha: float, beta: float) -> SSAValue:
    return s.select(s.compare("ge", x, s.constant(0)), x, s.mul(s.constant(alpha), x))


def _softsign(s: Scalars, x: SSAValue, alpha: float, beta: float) -> SSAValue:
    return s.div(x, s.add(s.constant(1), s.abs(x)))


def _gelu_erf(s: Scalars, x: SSAValue, alpha: float, beta: float) -> SSAValue:
    error = s.function(math.ErfOp, s.mul(x, s.constant(numbers.sqrt(0.5))))
    return s.mul(s.mul(s.constant(0.5), x), s.add(s.constant(1), error))


def _gelu_tanh(s: Scalars, x: SSAValue, alpha: float, beta: float) -> SSAValue:
    cubic = s.mul(s.mul(x, x), s.mul(x, s.constant(0.044715)))
    inner = s.mul(s.constant(numbers.sqrt(2 / numbers.pi)), s.add(x, cubic))
    return s.mul(s.mul(s.constant(0.5), x), s.add(s.constant(1), s.function(math.TanhOp, inner)))


def _mish(s: Scalars, x: SSAValue, alpha: float, beta: float) -> SSAValue:
    """x * tanh(softplus(x)) with a single exponential: the tangent is n / (n + 2), where n = exp(x) (exp(x) + 2).

    Where x is positive both are divided by exp(x)**2, so that nothing overflows.
    """
    small = s.function(math.ExpOp, s.neg(s.abs(x)))
    is_positive = s.compare("ge", x, s.constant(0))
    twice = s.add(small, small)
    above = s.select(is_positive, s.add(s.constant(1), twice), s.mul(small, s.add(small, s.constant(2))))
    below = s.add(above, s.select(is_positive, s.mul(small, twice), s.constant(2)))
    return s.mul(x, s.div(above, below))


def _celu(s: Scalars, x: SSAValue, alpha: float, beta: float) -> SSAValue:
    scaled = s.div(s.min(x, s.constant(0)), s.constant(alpha))
    below = s.mul(s.constant(alpha), s.function(math.ExpM1Op, scaled))
    return s.add(s.max(x, s.constant(0)), s.min(s.constant(0), below))


def _rational(function: RationalFunction) -> Activation:
    """A quotient of polynomials, in single precision whatever the numbers are."""

    def formula(outer: Scalars, x: SSAValue, alpha: float, beta: float) -> SSAValue:
        s = outer.on(f32)
        inside = _clip(s, s.cast(x, outer.element), -function.limit, function.limit)
        square = s.mul(inside, inside)
        above, below = (_polynomial(s, part, square) for part in (function.numerator, function.denominator))
        quotient = s.div(s.mul(inside, above), below)
        shifted = s.add(quotient, s.constant(function.offset)) if function.offset else quotient
        return outer.cast(_clip(s, shifted, function.least, numbers.inf), f32)

    return formula


def _polynomial(s: Scalars, coefficients: Sequence[float], x: SSAValue) -> SSAValue:
    result = s.constant(coefficients[0])
    for coefficient in coefficients[1:]:
        result = s.function(math.FmaOp, result, x, s.constant(coefficient))
    return result


_KIND = ActivationKind
FORMULAS: dict[ActivationKind, Activation] = {
    _KIND.RELU: lambda s, x, a, b: s.max(x, s.constant(0)),
    _KIND.SIGMOID: lambda s, x, a, b: sigmoid(s, x),
    _KIND.TANH: lambda s, x, a, b: s.function(math.TanhOp, x),
    _KIND.LEAKY_RELU: _leaky_relu,
    _KIND.ELU: lambda s, x, a, b: _exponential_below_zero(s, x, a),
    _KIND.SELU: lambda s, x, a, b: s.mul(s.constant(b), _exponential_below_zero(s, x, a)),
    _KIND.SOFTSIGN: _softsign,
    _KIND.SOFTPLUS: lambda s, x, a, b: s.mul(s.constant(a), softplus(s, s.mul(s.constant(b), x))),
    _KIND.CLIP: _clip,
    _KIND.HARD_SIGMOID: lambda s, x, a, b: _clip(s, _affine(s, x, a, b), 0, 1),
    _KIND.SCALED_TANH: lambda s, x, a, b: s.mul(s.constant(a), s.function(math.TanhOp, s.mul(s.constant(b), x))),
    _KIND.THRESHOLDED_RELU: lambda s, x, a, b: s.select(s.compare("gt", x, s.constant(a)), x, s.constant(0)),
    _KIND.GELU_ERF: _gelu_erf,
    _KIND.GELU_TANH: _gelu_tanh,
    _KIND.HARD_SWISH: lambda s, x, a, b: s.mul(x, _clip(s, _affine(s, x, a, b), 0, 1)),
    _KIND.MISH: _mish,
    _KIND.CELU: _celu,
    _KIND.RATIONAL_SIGMOID: _rational(SIGMOID),
    _KIND.RATIONAL_TANH: _rational(TANH),
}
