"""`libcudart` for `ctypes.CDLL` where there is no device: C functions that work on the host's memory.

Each is a function pointer with CUDA's signature, so that callers may pass addresses, `byref` and C numbers as to the
library itself, and set `argtypes`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

_POINTER, _SIZE, _INT, _STREAM = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cudaMalloc": (_POINTER, _SIZE),
    "cudaMallocAsync": (_POINTER, _SIZE, _STREAM),
    "cudaMallocHost": (_POINTER, _SIZE),
    "cudaHostAlloc": (_POINTER, _SIZE, ctypes.c_uint),
    "cudaFree": (_POINTER,),
    "cudaFreeAsync": (_POINTER, _STREAM),
    "cudaFreeHost": (_POINTER,),
    "cudaMemcpy": (_POINTER, _POINTER, _SIZE, _INT),
    "cudaMemcpyAsync": (_POINTER, _POINTER, _SIZE, _INT, _STREAM),
    "cudaMemset": (_POINTER, _INT, _SIZE),
    "cudaMemsetAsync": (_POINTER, _INT, _SIZE, _STREAM),
    "cudaStreamCreate": (_POINTER,),
    "cudaStreamCreateWithFlags": (_POINTER, ctypes.c_uint),
    "cudaStreamSynchronize": (_STREAM,),
    "cudaStreamDestroy": (_STREAM,),
    "cudaDeviceSynchronize": (),
    "cudaSetDevice": (_INT,),
    "cudaEventCreate": (_POINTER,),
    "cudaEventRecord": (_POINTER, _STREAM),
    "cudaEventSynchronize": (_POINTER,),
    "cudaEventElapsedTime": (_POINTER, _POINTER, _POINTER),
    "cudaEventDestroy": (_POINTER,),
}
# Those that write what they give to the address that is their first argument.
_MAKERS = frozenset({"cudaEventElapsedTime"}).union(
    name for name in _SIGNATURES if "Alloc" in name or "Malloc" in name or "Create" in name
)


def offer_libcudart(device_is_here: Callable[[], bool]) -> None:
    """Let `ctypes.CDLL("libcudart.so..")` give these functions while no device is there, and TensorRT's library of
    plugins the one that registers them, as opening it does.
    """
    real = ctypes.CDLL.__init__

    def open_library(self: ctypes.CDLL, name: str | None, *args: Any, **keywords: Any) -> None:
        file = "" if name is None else PurePath(name).name
        if file.startswith("libnvinfer_plugin.so"):
            functions = _plugin_functions()
        elif file.startswith("libcudart.so") and not device_is_here():
            functions = _functions()
        else:
            real(self, name, *args, **keywords)
            return
        real(self, None)
        vars(self).update(functions, _name=name)

    ctypes.CDLL.__init__ = open_library


def _plugin_functions() -> dict[str, Any]:
    from mlirt.tensorrt import init_libnvinfer_plugins

    def register(_: int | None, namespace: bytes | None) -> bool:
        return init_libnvinfer_plugins(None, (namespace or b"").decode())

    register(None, b"")
    return {"initLibNvInferPlugins": ctypes.CFUNCTYPE(ctypes.c_bool, _POINTER, ctypes.c_char_p)(register)}


def _functions() -> dict[str, Any]:
    return {name: _c_function(name, kinds) for name, kinds in _SIGNATURES.items()}


def _c_function(name: str, kinds: tuple[Any, ...]) -> Any:
    def call(*given: int | None) -> int:
        from mlirt import host_cudart

        function: Callable[..., tuple[Any, ...]] = getattr(host_cudart, name)
        numbers = [0 if one is None else one for one in given]
        if name not in _MAKERS:
            return int(function(*numbers)[0])
        target, others = (numbers[0], numbers[1:])
        if not target:
            return int(host_cudart.cudaError_t.cudaErrorInvalidValue)
        code, made = function(*others)
        if made is not None:
            kind = ctypes.c_float if name == "cudaEventElapsedTime" else ctypes.c_void_p
            kind.from_address(target).value = made
        return int(code)

    return ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(call)
