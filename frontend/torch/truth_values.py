"""Numbers as truth values and whole numbers, as PyTorch converts them."""

from __future__ import annotations

from mlirt.dialects.tensor_types import is_bool, is_float
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value


def as_bool(net: Network, x: Value) -> Value:
    """Whether elements are not 0."""
    if is_bool(x.element):
        return x
    return layers.unary(net, "not", layers.binary(net, "equal", x, layers.scalar_like(net, 0, x)))


def truncated(net: Network, x: Value) -> Value:
    """Floating-point numbers rounded toward zero."""
    negative = layers.binary(net, "less", x, layers.scalar_like(net, 0, x))
    return layers.select(net, negative, layers.unary(net, "ceil", x), layers.unary(net, "floor", x))


def has_minus(net: Network, x: Value) -> Value:
    """Whether a number is below 0, or the zero that is: 1 / -0 is minus infinity."""
    zero = layers.scalar_like(net, 0, layers.cast(net, x, "int8") if is_bool(x.element) else x)
    below = layers.binary(net, "less", layers.cast(net, x, zero.element), zero)
    if not is_float(x.element):
        return below
    is_zero = layers.binary(net, "equal", x, zero)
    return layers.select(net, is_zero, layers.binary(net, "less", layers.unary(net, "recip", x), zero), below)
