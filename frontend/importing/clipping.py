"""Numbers limited from below and above."""

from __future__ import annotations

import numpy as np

from mlirt.dialects.tensor_types import is_float
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value


def clipped(net: Network, x: Value, low: float | None, high: float | None) -> Value:
    """min(max(x, low), high), where an absent bound bounds nothing."""
    if low is None and high is None:
        return x
    if is_float(x.element):
        low, high = (-np.inf if low is None else low), (np.inf if high is None else high)
        return (
            layers.activation(net, "relu", x)
            if (low, high) == (0, np.inf)
            else layers.activation(net, "clip", x, low, high)
        )
    raised = x if low is None else layers.binary(net, "max", x, layers.scalar_like(net, low, x))
    return raised if high is None else layers.binary(net, "min", raised, layers.scalar_like(net, high, x))
