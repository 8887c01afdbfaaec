"""Numbers as truth values and whole numbers, as PyTorch converts them."""

from __future__ import annotations

from mlirt.dialects.tensor_types import is_bool
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
