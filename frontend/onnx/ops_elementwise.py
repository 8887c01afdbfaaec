"""Pointwise ops with two or more inputs, and Where."""

from __future__ import annotations

from mlirt.dialects.tensor_types import byte_width, is_bool, is_float, is_unsigned
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node

_BINARY = {
    "Add": "sum",
    "Sub": "sub",
    "Mul": "prod",
    "Div": "div",
    "And": "and",
    "Or": "or",
    "Xor": "xor",
    "Equal": "equal",
    "Greater": "greater",
    "Less": "less",
    "GreaterOrEqual": "greater_equal",
    "LessOrEqual": "less_equal",
    "BitwiseAnd": "bit_and",
    "BitwiseOr": "bit_or",
    "BitwiseXor": "bit_xor",
}
_VARIADIC = {"Sum": "sum", "Max": "max", "Min": "min", "Mean": "sum"}


@onnx_op(*_BINARY)
def binary(net: Network, node: Node) -> Value:
    a, b = _operands(net, node)
    return layers.binary(net, _BINARY[node.op_type], a, b)


def _operands(net: Network, node: Node) -> tuple[Value, Value]:
    """Both inputs; before opset 7 the second one lies at `axis` of the first where `broadcast` is set."""
    a, b = node.input(0), node.input(1)
    if node.opset < 7 and node.integer("broadcast", 0) and node.has("axis"):
        behind = a.rank - node.axis("axis", 0, a.rank) - b.rank
        b = layers.reshape(net, b, [*b.dims, *[1] * max(behind, 0)])
    return a, b


@onnx_op(*_VARIADIC)
def variadic(net: Network, node: Node) -> Value:
    values = node.present()
    if not values:
        raise node.invalid("expected at least one input")
    result = values[0]
    for value in values[1:]:
        result = layers.binary(net, _VARIADIC[node.op_type], result, value)
    if node.op_type == "Mean" and len(values) > 1:
        return layers.binary(net, "prod", result, layers.scalar_like(net, 1 / len(values), result))
    return result


@onnx_op("Mod")
def modulo(net: Network, node: Node) -> Value:
    """The sign of the divisor, or with `fmod` that of the dividend."""
    return layers.binary(net, "fmod" if node.integer("fmod", 0) else "mod", node.input(0), node.input(1))


@onnx_op("Pow")
def power(net: Network, node: Node) -> Value:
    """The result has the base's type; the exponent may have another one."""
    base, exponent = node.input(0), node.input(1)
    if base.element == exponent.element:
        return _small_power(net, base, exponent) or layers.binary(net, "pow", base, exponent)
    if is_float(base.element):
        exponent = layers.cast(net, exponent, base.element)
        return _small_power(net, base, exponent) or layers.binary(net, "pow", base, exponent)
    wide = "float64" if is_float(exponent.element) else "int64"
    result = layers.binary(net, "pow", layers.cast(net, base, wide), layers.cast(net, exponent, wide))
    return layers.cast(net, result, base.element)


def _small_power(net: Network, base: Value, exponent: Value) -> Value | None:
    """A square as a product, which every target computes exactly."""
    constant = exponent.array
    if constant is None or constant.size != 1 or float(constant.reshape(-1)[0]) != 2.0 or exponent.rank > base.rank:
        return None
    return layers.binary(net, "prod", base, base)


@onnx_op("BitShift")
def bit_shift(net: Network, node: Node) -> Value:
    """A shift by a negative amount, or by all bits and more, leaves what the sign bit extends to."""
    x, amount, direction = node.input(0), node.input(1), node.text("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise node.invalid(f"expected direction as 'LEFT' or 'RIGHT', got {direction!r}")
    kind = "shift_left" if direction == "LEFT" else "shift_right"
    bits = 8 * byte_width(x.element)
    known = amount.array
    if known is not None and bool(((known >= 0) & (known < bits)).all()):
        return layers.binary(net, kind, x, amount)
    limit = layers.scalar_like(net, bits, amount)
    zero = layers.scalar_like(net, 0, amount)
    small = layers.binary(net, "less", amount, limit)
    if not is_unsigned(x.element):
        small = layers.binary(net, "and", small, layers.binary(net, "greater_equal", amount, zero))
    shifted = layers.binary(net, kind, x, layers.select(net, small, amount, zero))
    signs = direction == "RIGHT" and not is_unsigned(x.element)
    rest = layers.binary(net, kind, x, layers.scalar_like(net, bits - 1, x)) if signs else layers.scalar_like(net, 0, x)
    return layers.select(net, small, shifted, rest)


@onnx_op("Where")
def where(net: Network, node: Node) -> Value:
    condition = node.input(0)
    if not is_bool(condition.element):
        raise node.invalid(f"expected a boolean condition, but it is {condition.element_name}")
    return layers.select(net, condition, node.input(1), node.input(2))
