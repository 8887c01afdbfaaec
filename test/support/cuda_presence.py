"""Says whether this machine has a CUDA device, without any CUDA package."""

import ctypes
from functools import cache


@cache
def has_cuda() -> bool:
    """Whether the driver is here and finds a device."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
