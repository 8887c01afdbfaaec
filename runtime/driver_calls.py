"""The types of the arguments that the CUDA driver's functions take, for ctypes."""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from mlirt.runtime.tensor_maps import declare


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: what a launch is beside its sizes."""

    _fields_ = [("id", c_int), ("padding", c_int), ("value", c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        *[(f"{what}_{axis}", c_uint) for what in ("grid", "block") for axis in "xyz"],
        ("shared_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(LaunchAttribute)),
        ("attribute_count", c_uint),
    ]


_HELD = ("cuMemcpyHtoDAsync_v2", "cuPointerGetAttributes")


def held_calls(library: Any) -> Any:
    """Calls of a declared driver that take a microsecond and never wait, without giving up the interpreter's lock.

    To have it back takes up to 5 ms (`sys.getswitchinterval`) where another thread computes in Python.
    """
    if not isinstance(library, ctypes.CDLL):
        return library
    held = ctypes.PyDLL(library._name, handle=library._handle)
    for name in _HELD:
        function, declared = getattr(held, name), getattr(library, name)
        function.argtypes, function.restype = declared.argtypes, declared.restype
    return held


def declare_driver(library: Any) -> None:
    """Give every entry its argument types: a 64-bit handle passed as a plain int would be cut to 32 bits."""
    any_pointer, address = c_void_p, c_uint64
    signatures: dict[str, Sequence[Any]] = {
        "cuInit": [c_uint],
        "cuGetErrorName": [c_int, POINTER(c_char_p)],
        "cuGetErrorString": [c_int, POINTER(c_char_p)],
        "cuDeviceGetCount": [POINTER(c_int)],
        "cuDeviceGet": [POINTER(c_int), c_int],
        "cuDeviceGetName": [c_char_p, c_int, c_int],
        "cuDriverGetVersion": [POINTER(c_int)],
        "cuDeviceGetAttribute": [POINTER(c_int), c_int, c_int],
        "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
        "cuCtxSetCurrent": [any_pointer],
        "cuCtxGetCurrent": [POINTER(c_void_p)],
        "cuMemAlloc_v2": [POINTER(c_uint64), c_size_t],
        "cuMemFree_v2": [address],
        "cuMemHostAlloc": [POINTER(c_void_p), c_size_t, c_uint],
        "cuMemFreeHost": [any_pointer],
        "cuModuleLoadData": [POINTER(c_void_p), c_char_p],
        "cuModuleUnload": [any_pointer],
        "cuModuleGetFunction": [POINTER(c_void_p), any_pointer, c_char_p],
        "cuFuncSetAttribute": [any_pointer, c_int, c_int],
        "cuStreamCreate": [POINTER(c_void_p), c_uint],
        "cuStreamDestroy_v2": [any_pointer],
        "cuEventDestroy_v2": [any_pointer],
        "cuEventCreate": [POINTER(c_void_p), c_uint],
        "cuMemcpyHtoDAsync_v2": [address, any_pointer, c_size_t, any_pointer],
        "cuMemcpyDtoHAsync_v2": [any_pointer, address, c_size_t, any_pointer],
        "cuMemcpyDtoDAsync_v2": [address, address, c_size_t, any_pointer],
        "cuMemsetD8Async": [address, ctypes.c_ubyte, c_size_t, any_pointer],
        "cuLaunchKernelEx": [POINTER(LaunchConfig), any_pointer, POINTER(c_void_p), POINTER(c_void_p)],
        "cuLaunchKernel": [any_pointer, *[c_uint] * 7, any_pointer, POINTER(c_void_p), POINTER(c_void_p)],
        "cuStreamBeginCapture_v2": [any_pointer, c_int],
        "cuStreamIsCapturing": [any_pointer, POINTER(c_int)],
        "cuStreamEndCapture": [any_pointer, POINTER(c_void_p)],
        "cuGraphInstantiateWithFlags": [POINTER(c_void_p), any_pointer, ctypes.c_ulonglong],
        "cuGraphDestroy": [any_pointer],
        "cuGraphLaunch": [any_pointer, any_pointer],
        "cuGraphExecDestroy": [any_pointer],
        "cuEventRecord": [any_pointer, any_pointer],
        "cuStreamWaitEvent": [any_pointer, any_pointer, c_uint],
        "cuEventElapsedTime": [POINTER(c_float), any_pointer, any_pointer],
        "cuStreamSynchronize": [any_pointer],
    }
    for name, argument_types in signatures.items():
        function = getattr(library, name)
        function.argtypes, function.restype = argument_types, c_int
    if hasattr(library, "cuModuleGetLoadingMode"):  # CUDA 11.7 on
        library.cuModuleGetLoadingMode.argtypes = [POINTER(c_int)]
    declare(library)
