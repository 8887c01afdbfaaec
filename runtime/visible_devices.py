"""The GPUs that processes started by this one may be given, by the names that CUDA_VISIBLE_DEVICES takes."""

import ctypes
import os
from collections.abc import Mapping, Sequence
from ctypes import POINTER, byref, c_int
from typing import Any

_LIBRARIES = ("libcuda.so.1", "nvcuda.dll")
_VARIABLE = "CUDA_VISIBLE_DEVICES"
_BUS_ID_BYTES = 32


def visible_devices() -> tuple[str, ...]:
    """Such as ("0", "1"), or what CUDA_VISIBLE_DEVICES names; none where there is no driver or no device.

    No context is made on any of them.
    """
    library = _driver()
    count = c_int()
    if library is None or library.cuInit(0) or library.cuDeviceGetCount(byref(count)):
        return ()
    return device_names(count.value, os.environ.get(_VARIABLE))


def device_names(count: int, named: str | None) -> tuple[str, ...]:
    """The names of so many devices that the driver finds, where the variable has the value `named`."""
    if named is None:
        return tuple(map(str, range(count)))
    return tuple(name.strip() for name in named.split(",") if name.strip())[:count]


def environment_for(device: str | None) -> Mapping[str, str]:
    """This process's environment for one that is to see a single device; None lets it see all."""
    return dict(os.environ) if device is None else {**os.environ, _VARIABLE: device}


def device_of_number(number: int, devices: Sequence[str]) -> str | None:
    """The device of a process by its number: by turns; None where there is no choice."""
    return devices[number % len(devices)] if len(devices) > 1 else None


def current_bus_id() -> str | None:
    """Where on the bus the device is that is current in this thread, which no renumbering changes; None without one."""
    library, device = _driver(), c_int()
    if library is None or library.cuCtxGetDevice(byref(device)):
        return None
    name = ctypes.create_string_buffer(_BUS_ID_BYTES)
    return None if library.cuDeviceGetPCIBusId(name, len(name), device) else name.value.decode()


def _driver() -> Any | None:
    for name in _LIBRARIES:
        try:
            library: Any = ctypes.CDLL(name)
        except OSError:
            continue
        library.cuDeviceGetCount.argtypes = [POINTER(c_int)]
        library.cuCtxGetDevice.argtypes = [POINTER(c_int)]
        library.cuDeviceGetPCIBusId.argtypes = [ctypes.c_char_p, c_int, c_int]
        return library
    return None
