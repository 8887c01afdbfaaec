"""Rectifiers and clips as bounds, and whether quantised numbers keep to them by themselves."""

from __future__ import annotations

from mlirt.dialects.tensor_types import integer_range
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.passes.quantization.scalings import Scaling

KINDS = (ActivationKind.RELU, ActivationKind.CLIP)


def bounds_of(op: ActivationOp) -> tuple[float, float]:
    """The least and the greatest result of an activation of one of these kinds."""
    if op.kind.data is ActivationKind.RELU:
        return 0.0, float("inf")
    return op.alpha.value.data, op.beta.value.data


def is_implied(op: ActivationOp, scaling: Scaling) -> bool:
    """Whether the integers for numbers beyond the bounds are those for the bounds: rounding never changes an order."""
    import numpy as np

    least, greatest = integer_range(scaling.element)
    with np.errstate(over="ignore"):
        low, high = (np.rint(np.float32(bound) / scaling.scale) + scaling.zero for bound in bounds_of(op))
    return bool(np.all(low <= least) and np.all(high >= greatest))


def holds_before(op: ActivationOp, scaling: Scaling) -> bool:
    """Whether no integer stands for a number beyond the bounds."""
    import numpy as np

    least, greatest = ((limit - scaling.zero) * np.float64(scaling.scale) for limit in integer_range(scaling.element))
    low, high = bounds_of(op)
    return bool(np.all(least >= low) and np.all(greatest <= high))
