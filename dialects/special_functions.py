"""Functions that NumPy lacks, in double precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def erf(x: Array) -> Array:
    """The error function of each element."""
    import math

    import numpy as np

    return np.vectorize(math.erf, otypes=[np.float64])(x)
