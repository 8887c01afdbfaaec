"""Batches that lie in the memory of a GPU: calibrators may give addresses in place of arrays (feature 9.29)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirt.builder.calibration.histogram import Array
from mlirt.runtime.cuda_driver import open_driver
from mlirt.runtime.data_types import numpy_dtype


def from_address(address: int, shape: Sequence[int], dtype: str) -> Array:
    """The array of this shape at an address of the device, copied to the host once all work there is done."""
    driver = open_driver()
    driver.activate()
    array = np.empty(tuple(shape), numpy_dtype(dtype))
    driver.copy_to_host(array.ctypes.data, address, array.nbytes, 0)
    driver.synchronize(0)
    return array
