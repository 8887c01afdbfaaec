"""Pointwise operators of two tensors or numbers, comparisons, and where."""

from __future__ import annotations

import numpy as np

from mlirt.dialects.tensor_types import element_type, is_bool, is_float
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.clipping import clipped
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op, torch_op
from mlirt.frontend.torch.truth_values import as_bool, has_minus, truncated

_ARITHMETIC = {
    "mul": "prod",
    "maximum": "max",
    "minimum": "min",
    "fmod": "fmod",
    "remainder": "mod",
    "bitwise_and": "bit_and",
    "bitwise_or": "bit_or",
    "bitwise_xor": "bit_xor",
    "floor_divide": "floor_div",
    "__lshift__": "shift_left",
    "__rshift__": "shift_right",
    "bitwise_left_shift": "shift_left",
    "bitwise_right_shift": "shift_right",
}
_LOGICAL = {"bit_and": "and", "bit_or": "or", "bit_xor": "xor", "prod": "and", "max": "or", "min": "and"}
_COMPARISONS = {
    "eq": "equal",
    "gt": "greater",
    "lt": "less",
    "ge": "greater_equal",
    "le": "less_equal",
}
_OF_TENSORS = ("maximum", "minimum", "floor_divide")
_FORMS = ("Tensor", "Scalar")


def _base(call: Call) -> str:
    return call.operator.split(".")[1]


@aten_op(
    *(f"{name}.Tensor" for name in _ARITHMETIC.keys() - set(_OF_TENSORS)),
    *(f"{name}.Scalar" for name in _ARITHMETIC.keys() - set(_OF_TENSORS) if not name.endswith("_shift")),
    *(f"{name}.default" for name in _OF_TENSORS),
    *(f"bitwise_{side}_shift.Tensor_Scalar" for side in ("left", "right")),
)
def arithmetic(net: Network, call: Call) -> Value:
    kind, element = _ARITHMETIC[_base(call)], call.element
    a, b = call.operand("self", element), call.operand("other", element)
    if element == "bool":
        return layers.binary(net, _LOGICAL[kind], a, b)
    return layers.binary(net, kind, a, b)


@aten_op("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "rsub.Tensor", "rsub.Scalar")
def sum_or_difference(net: Network, call: Call) -> Value:
    """self + alpha * other."""
    element, alpha = call.element, call.arguments["alpha"]
    a, b = call.operand("self", element), call.operand("other", element)
    if _base(call) == "rsub":
        a, b = b, a
    if element == "bool":
        return layers.binary(net, "or", a, b)
    if alpha != 1:
        scaled = a if _base(call) == "rsub" else b
        scaled = layers.binary(net, "prod", scaled, call.operand("alpha", element))
        a, b = (scaled, b) if _base(call) == "rsub" else (a, scaled)
    return layers.binary(net, "sum" if _base(call) == "add" else "sub", a, b)


@aten_op("div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode", "true_divide.Tensor")
def divide(net: Network, call: Call) -> Value:
    mode, element = call.arguments.get("rounding_mode"), call.element
    a, b = call.operand("self", element), call.operand("other", element)
    if mode == "floor":
        return layers.binary(net, "floor_div", a, b)
    quotient = layers.binary(net, "div", a, b)
    return truncated(net, quotient) if mode == "trunc" and is_float(quotient.element) else quotient


@aten_op(*(f"{name}.{form}" for name in (*_COMPARISONS, "ne") for form in _FORMS))
def compare(net: Network, call: Call) -> Value:
    element = call.promoted(["self", "other"])
    a, b = call.operand("self", element), call.operand("other", element)
    if _base(call) == "ne":
        return layers.unary(net, "not", layers.binary(net, "equal", a, b))
    if element == "bool" and _base(call) != "eq":
        a, b = layers.cast(net, a, "int8"), layers.cast(net, b, "int8")
    return layers.binary(net, _COMPARISONS[_base(call)], a, b)


@aten_op("logical_and.default", "logical_or.default", "logical_xor.default")
def logical(net: Network, call: Call) -> Value:
    a, b = (as_bool(net, call.value(name)) for name in ("self", "other"))
    return layers.binary(net, _base(call).removeprefix("logical_"), a, b)


@aten_op("logical_not.default")
def logical_not(net: Network, call: Call) -> Value:
    return layers.unary(net, "not", as_bool(net, call.value("self")))


@aten_op("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(net: Network, call: Call) -> Value:
    exponent, base = call.arguments["exponent"], call.operand("self", call.element)
    if isinstance(exponent, int | float):
        return power_of(net, base, float(exponent))
    return layers.binary(net, "pow", base, call.operand("exponent", call.element))


def power_of(net: Network, base: Value, exponent: float) -> Value:
    """A power by a number; squares, cubes and roots are what PyTorch computes them as."""
    if exponent in (2.0, 3.0):
        square = layers.binary(net, "prod", base, base)
        return square if exponent == 2.0 else layers.binary(net, "prod", square, base)
    if is_float(base.element) and exponent in (0.5, -0.5, -1.0):
        root = base if exponent == -1.0 else layers.unary(net, "sqrt", base)
        return root if exponent == 0.5 else layers.unary(net, "recip", root)
    if exponent == 1.0:
        return base
    return layers.binary(net, "pow", base, layers.scalar_like(net, exponent, base))


@aten_op("where.self")
def where(net: Network, call: Call) -> Value:
    condition = as_bool(net, call.value("condition"))
    return layers.select(net, condition, call.operand("self", call.element), call.operand("other", call.element))


@aten_op("atan2.default")
def atan2(net: Network, call: Call) -> Value:
    """The angle of (other, self): the arc tangent of the quotient, turned by half a circle where other is negative."""
    y, x = call.operand("self", call.element), call.operand("other", call.element)
    zero_x, zero_y = layers.scalar_like(net, 0, x), layers.scalar_like(net, 0, y)
    angle = layers.unary(net, "atan", layers.binary(net, "div", y, x))
    below = layers.binary(net, "less", y, zero_y)
    half = layers.select(net, below, layers.scalar_like(net, -np.pi, y), layers.scalar_like(net, np.pi, y))
    turned = layers.select(net, layers.binary(net, "less", x, zero_x), layers.binary(net, "sum", angle, half), angle)
    both = layers.binary(
        net, "and", *layers.aligned(net, [layers.binary(net, "equal", v, z) for v, z in ((x, zero_x), (y, zero_y))])
    )
    return layers.select(net, both, layers.scalar_like(net, 0, y), turned)


@aten_op("fmax.default", "fmin.default")
def extreme_of_numbers(net: Network, call: Call) -> Value:
    """The larger or smaller of two, or the one that is a number where the other is not."""
    a, b = call.operand("self", call.element), call.operand("other", call.element)
    found = layers.binary(net, _base(call)[1:], a, b)
    if not is_float(found.element):
        return found
    found = layers.select(net, layers.unary(net, "isnan", b), a, found)
    return layers.select(net, layers.unary(net, "isnan", a), b, found)


@aten_op("copysign.Tensor", "copysign.Scalar")
def with_sign(net: Network, call: Call) -> Value:
    """The size of one number with the sign of the other, be that a zero's."""
    size, sign = layers.aligned(
        net, [layers.unary(net, "abs", call.operand("self", call.element)), call.operand("other", call.element)]
    )
    return layers.select(net, has_minus(net, sign), layers.unary(net, "neg", size), size)


@aten_op("clamp.default")
def clamp(net: Network, call: Call) -> Value:
    x = call.operand("self", call.element)
    low, high = (call.real(name) if call.given(name) else None for name in ("min", "max"))
    return clipped(net, x, low, high)


@aten_op("clamp.Tensor")
def clamp_by_tensors(net: Network, call: Call) -> Value:
    x = call.operand("self", call.element)
    if call.given("min"):
        x = layers.binary(net, "max", x, call.operand("min", call.element))
    return layers.binary(net, "min", x, call.operand("max", call.element)) if call.given("max") else x


@torch_op("aten._to_copy.default", "prims.convert_element_type.default")
def converted(net: Network, call: Call) -> Value:
    x, element = call.value("self" if "self" in call.arguments else "a"), element_type(call.element)
    return as_bool(net, x) if is_bool(element) else layers.cast(net, x, element)
