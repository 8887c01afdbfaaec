"""Numbers that change nothing in a reduction."""

from __future__ import annotations

import math

import numpy as np

from mlirt.dialects.tensor_types import is_float
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value


def neutral_number(net: Network, kind: str, x: Value) -> Value:
    """For sums, means and products, for maxima (`amax`, `max`) and minima, in the type and rank of `x`."""
    number: float = {"sum": 0, "mean": 0, "prod": 1}.get(kind, math.inf)
    is_largest = kind in ("amax", "max")
    if number == math.inf and not is_float(x.element):
        limits = np.iinfo(x.element_name)
        number = int(limits.min if is_largest else limits.max)
    elif number == math.inf and is_largest:
        number = -math.inf
    return layers.scalar_like(net, number, x)
