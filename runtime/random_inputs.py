"""Random numbers for inputs that nobody gave any for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlirt.runtime.data_types import numpy_dtype

if TYPE_CHECKING:
    import numpy as np


def random_input(dtype: str, shape: Sequence[int], seed: int) -> np.ndarray[Any, np.dtype[Any]]:
    """Floats in [-1, 1], whole numbers 0 or 1; always the same for a seed."""
    import numpy as np

    type_ = numpy_dtype(dtype)
    generator = np.random.default_rng(seed)
    if type_.kind in "iub":
        return generator.integers(0, 2, shape).astype(type_)
    return generator.uniform(-1, 1, shape).astype(type_)
