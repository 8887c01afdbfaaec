"""Pointwise operators of one tensor: activations and functions of a number."""

from __future__ import annotations

import math

import numpy as np

from mlirt.dialects.tensor_types import is_bool, is_float
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.clipping import clipped
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op
from mlirt.frontend.torch.truth_values import has_minus, truncated

# The kind in trt, and the arguments that are alpha and beta; numbers stand for themselves.
_ACTIVATIONS: dict[str, tuple[str, str | float, str | float]] = {
    "sigmoid": ("sigmoid", 0.0, 0.0),
    "tanh": ("tanh", 0.0, 0.0),
    "leaky_relu": ("leaky_relu", "negative_slope", 0.0),
    "celu": ("celu", "alpha", 0.0),
    "mish": ("mish", 0.0, 0.0),
    "selu": ("selu", 1.6732632423543772848170429916717, 1.0507009873554804934193349852946),
    "hardsigmoid": ("hard_sigmoid", 1 / 6, 0.5),
    "hardswish": ("hard_swish", 1 / 6, 0.5),
}
_UNARY = {
    "exp": "exp",
    "log": "log",
    "sqrt": "sqrt",
    "reciprocal": "recip",
    "abs": "abs",
    "neg": "neg",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "sinh": "sinh",
    "cosh": "cosh",
    "asin": "asin",
    "acos": "acos",
    "atan": "atan",
    "asinh": "asinh",
    "acosh": "acosh",
    "atanh": "atanh",
    "ceil": "ceil",
    "floor": "floor",
    "erf": "erf",
    "sign": "sign",
    "round": "round",
}
_WHOLE = ("ceil", "floor", "round")


def _base(call: Call) -> str:
    return call.operator.split(".")[1]


@aten_op(*(f"{name}.default" for name in _ACTIVATIONS))
def activation(net: Network, call: Call) -> Value:
    kind, *numbers = _ACTIVATIONS[_base(call)]
    alpha, beta = (call.real(number) if isinstance(number, str) else number for number in numbers)
    return layers.activation(net, kind, call.operand("self", call.element), alpha, beta)


@aten_op("relu.default")
def relu(net: Network, call: Call) -> Value:
    return clipped(net, call.value("self"), 0, None)


@aten_op("hardtanh.default")
def hard_tanh(net: Network, call: Call) -> Value:
    return clipped(net, call.value("self"), call.real("min_val"), call.real("max_val"))


@aten_op("relu6.default")
def relu6(net: Network, call: Call) -> Value:
    return clipped(net, call.value("self"), 0, 6)


@aten_op("gelu.default")
def gelu(net: Network, call: Call) -> Value:
    form = call.text("approximate")
    return layers.activation(net, "gelu_tanh" if form == "tanh" else "gelu_erf", call.value("self"))


@aten_op("silu.default")
def silu(net: Network, call: Call) -> Value:
    x = call.value("self")
    return layers.binary(net, "prod", x, layers.activation(net, "sigmoid", x))


@aten_op("elu.default")
def elu(net: Network, call: Call) -> Value:
    """scale * x above 0, scale * alpha * (exp(input_scale * x) - 1) below."""
    x, alpha, scale, factor = call.value("self"), call.real("alpha"), call.real("scale"), call.real("input_scale")
    if factor != 1.0:
        inner = layers.binary(net, "prod", x, layers.scalar_like(net, factor, x))
        below = layers.activation(net, "elu", inner, alpha)
        above = layers.binary(net, "greater", x, layers.scalar_like(net, 0, x))
        result = layers.select(net, above, x, below)
    else:
        result = layers.activation(net, "elu", x, alpha)
    return result if scale == 1.0 else layers.binary(net, "prod", result, layers.scalar_like(net, scale, x))


@aten_op("softplus.default")
def softplus(net: Network, call: Call) -> Value:
    """log(1 + exp(beta x)) / beta, which is x above the threshold to the last bit that float32 has."""
    x, beta, threshold = call.value("self"), call.real("beta"), call.real("threshold")
    result = layers.activation(net, "softplus", x, 1 / beta, beta)
    if threshold >= 20.0:
        return result
    scaled = layers.binary(net, "prod", x, layers.scalar_like(net, beta, x))
    above = layers.binary(net, "greater", scaled, layers.scalar_like(net, threshold, x))
    return layers.select(net, above, x, result)


@aten_op("prelu.default", "_prelu_kernel.default")
def prelu(net: Network, call: Call) -> Value:
    x, slope = call.value("self"), call.value("weight")
    if call.operator == "aten.prelu.default" and x.rank > 1:
        slope = layers.reshape(net, slope, [*slope.dims, *[1] * (x.rank - 2)])
    left, right = layers.aligned(net, [x, slope])
    return net.emit("parametric_relu", [left, layers.broadcast_to(net, right, left.dims)])


@aten_op(*(f"{name}.default" for name in _UNARY))
def unary(net: Network, call: Call) -> Value:
    name, x = _base(call), call.operand("self", call.element)
    if name in _WHOLE and not is_float(x.element):
        return x
    return layers.unary(net, _UNARY[name], x)


@aten_op("round.decimals")
def rounded_to_decimals(net: Network, call: Call) -> Value:
    """To so many digits behind the point, or to tens and hundreds for fewer than none."""
    x, decimals = call.value("self"), call.integer("decimals")
    if not is_float(x.element):
        return x
    if decimals == 0:
        return layers.unary(net, "round", x)
    power = layers.scalar_like(net, 10.0 ** abs(decimals), x)
    there, back = ("prod", "div") if decimals > 0 else ("div", "prod")
    return layers.binary(net, back, layers.unary(net, "round", layers.binary(net, there, x, power)), power)


@aten_op("signbit.default")
def sign_bit(net: Network, call: Call) -> Value:
    return has_minus(net, call.value("self"))


@aten_op("angle.default")
def angle(net: Network, call: Call) -> Value:
    """Of a real number: pi below 0, else 0."""
    x = call.operand("self", call.element)
    zero = layers.scalar_like(net, 0, x)
    found = layers.select(net, layers.binary(net, "less", x, zero), layers.scalar_like(net, math.pi, x), zero)
    return layers.select(net, layers.unary(net, "isnan", x), x, found)


@aten_op("rsqrt.default")
def reciprocal_root(net: Network, call: Call) -> Value:
    return layers.unary(net, "recip", layers.unary(net, "sqrt", call.operand("self", call.element)))


@aten_op("square.default")
def square(net: Network, call: Call) -> Value:
    x = call.operand("self", call.element)
    return layers.binary(net, "prod", x, x)


@aten_op("log2.default", "log10.default")
def other_logarithm(net: Network, call: Call) -> Value:
    x = layers.unary(net, "log", call.operand("self", call.element))
    base = 2 if _base(call) == "log2" else 10
    return layers.binary(net, "prod", x, layers.scalar_like(net, 1 / math.log(base), x))


@aten_op("exp2.default")
def power_of_two(net: Network, call: Call) -> Value:
    x = call.operand("self", call.element)
    return layers.binary(net, "pow", layers.scalar_like(net, 2, x), x)


@aten_op("log1p.default")
def log_of_one_more(net: Network, call: Call) -> Value:
    """log(1 + x) as Kahan has it: x * log(u) / (u - 1) with u = 1 + x rounded, which loses no digits near 0."""
    x = call.operand("self", call.element)
    one = layers.scalar_like(net, 1, x)
    u = layers.binary(net, "sum", x, one)
    rest = layers.binary(net, "sub", u, one)
    usual = layers.binary(net, "prod", layers.unary(net, "log", u), layers.binary(net, "div", x, rest))
    same = layers.binary(net, "equal", u, one)
    infinite = layers.binary(net, "equal", u, layers.scalar_like(net, np.inf, x))
    return layers.select(net, infinite, u, layers.select(net, same, x, usual))


@aten_op("expm1.default")
def exponential_less_one(net: Network, call: Call) -> Value:
    """exp(x) - 1 as 2 sinh(x / 2) exp(x / 2), which loses no digits near 0."""
    x = call.operand("self", call.element)
    half = layers.binary(net, "prod", x, layers.scalar_like(net, 0.5, x))
    near = layers.binary(net, "prod", layers.unary(net, "sinh", half), layers.unary(net, "exp", half))
    near = layers.binary(net, "prod", near, layers.scalar_like(net, 2, x))
    far = layers.binary(net, "sub", layers.unary(net, "exp", x), layers.scalar_like(net, 1, x))
    large = layers.binary(net, "greater", layers.unary(net, "abs", x), layers.scalar_like(net, 1, x))
    return layers.select(net, large, far, near)


@aten_op("bitwise_not.default")
def bitwise_not(net: Network, call: Call) -> Value:
    x = call.value("self")
    return layers.unary(net, "not" if is_bool(x.element) else "bitwise_not", x)


@aten_op("trunc.default")
def truncate(net: Network, call: Call) -> Value:
    x = call.value("self")
    return truncated(net, x) if is_float(x.element) else x


@aten_op("isnan.default", "isinf.default")
def is_special(net: Network, call: Call) -> Value:
    x = layers.in_float(net, call.value("self"))
    return layers.unary(net, _base(call), x)


@aten_op(
    "alias.default",
    "clone.default",
    "detach.default",
    "lift_fresh_copy.default",
    "contiguous.default",
    "dropout.default",
    "alpha_dropout.default",
    "feature_dropout.default",
)
def same(net: Network, call: Call) -> Value:
    """The tensor itself; dropout drops nothing in inference."""
    if "dropout" in call.operator and call.flag("train"):
        raise call.unsupported("it is in training mode; call eval() on the module")
    return call.value("input" if "dropout" in call.operator else "self")


@aten_op("copy.default")
def copied(net: Network, call: Call) -> Value:
    return layers.expand(net, layers.cast(net, call.value("src"), call.element), call.result_dims)
