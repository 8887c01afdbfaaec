"""Whether CUDA's driver is here and sees a device, by two calls of its own; mlirt's runtime is not imported for it."""

from __future__ import annotations

import ctypes
from functools import cache


@cache
def device_is_here() -> bool:
    """False where the driver is missing, refuses to start, or counts no device."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
