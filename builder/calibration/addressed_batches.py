"""Batches that lie at an address: calibrators may give addresses in place of arrays (tensorrt-features.md#9.29)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirt.builder.calibration.histogram import Array
from mlirt.runtime.api.caller_memory import read
from mlirt.runtime.data_types import numpy_dtype


def from_address(address: int, shape: Sequence[int], dtype: str, target: str) -> Array:
    """A copy of the array of this shape at an address: of the device, once all work there is done, or of the host.

    Raises `InvalidInputError` for the address 0.
    """
    return np.array(read(target, address, numpy_dtype(dtype), shape, 0))
