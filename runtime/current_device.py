"""Which CUDA device is current in a thread, as cudaSetDevice leaves it, and methods that work on another one.

Whoever makes an engine chooses its device first (tensorrt-features.md#13.22, 13.23). The driver is asked only where the
process has loaded it: without it, or without a context, the current device is 0, as for CUDA's own runtime.
"""

import ctypes
import os
from collections.abc import Callable
from ctypes import POINTER, byref, c_int, c_void_p
from functools import cache, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

_LIBRARY = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
_SUCCESS = 0

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Enterable(Protocol):
    """A device that can be current."""

    def enter(self) -> int | None: ...
    def leave(self, before: int | None) -> None: ...


class OnDevice(Protocol):
    """What belongs to a device."""

    @property
    def driver(self) -> Enterable: ...


Owner = TypeVar("Owner", bound=OnDevice)


def current_ordinal() -> int:
    """The number of the device that is current in this thread."""
    library, context, ordinal = _loaded_library(), c_void_p(), c_int()
    if library is None or library.cuCtxGetCurrent(byref(context)) != _SUCCESS or not context.value:
        return 0
    return ordinal.value if library.cuCtxGetDevice(byref(ordinal)) == _SUCCESS else 0


def _loaded_library() -> Any | None:
    """The driver, where somebody in this process has loaded it."""
    try:
        return _library()
    except OSError:
        return None


@cache
def _library() -> Any:
    library: Any = ctypes.CDLL(_LIBRARY, mode=getattr(os, "RTLD_NOLOAD", 0) | getattr(os, "RTLD_NOW", 0))
    library.cuCtxGetCurrent.argtypes = [POINTER(c_void_p)]
    library.cuCtxGetDevice.argtypes = [POINTER(c_int)]
    return library


def on_its_device(
    method: Callable[Concatenate[Owner, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """Let a method's device be current in it; behind it the one is current again that the caller had chosen."""

    @wraps(method)
    def on_device(self: Owner, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        driver = self.driver
        before = driver.enter()
        try:
            return method(self, *args, **kwargs)
        finally:
            driver.leave(before)

    return on_device
