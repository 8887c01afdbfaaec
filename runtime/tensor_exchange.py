"""Tensors of other libraries where they lie: by DLPack and by `__cuda_array_interface__`, without a copy.

An exchange keeps the tensor's memory for as long as the array that it gives is there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mlirt.errors import InvalidInputError
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.lent_arrays import lent_array

_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13
_NAMES = {_CPU: "cpu", _CUDA: "gpu", _CUDA_HOST: "cuda_host", _CUDA_MANAGED: "gpu"}
_WORDS = {0: "int", 1: "uint", 2: "float"}
_OTHERS = {(4, 16): "bfloat16", (6, 8): "bool", (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2"}


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_rename_capsule = ctypes.pythonapi.PyCapsule_SetName
_rename_capsule.restype, _rename_capsule.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
# The capsule keeps the pointer to its name, not a copy.
_USED = ctypes.create_string_buffer(b"used_dltensor")


class _Lease:
    """What another library lent; given back when nobody has it any more."""

    def __init__(self, capsule: object) -> None:
        self._address = _capsule_pointer(capsule, b"dltensor")
        _rename_capsule(capsule, ctypes.cast(_USED, ctypes.c_char_p))
        self.managed = _Managed.from_address(self._address)

    def __del__(self) -> None:
        if self.managed.deleter:
            _DELETER(self.managed.deleter)(self._address)


@dataclass(frozen=True)
class ExchangedTensor:
    """A tensor where it lies; strides are in bytes, `owner` keeps its memory."""

    device: str
    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    owner: object

    @property
    def is_dense(self) -> bool:
        """Whether its elements lie one behind the other in row-major order."""
        step = numpy_dtype(self.dtype).itemsize
        for length, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if length > 1 and stride != step:
                return False
            step *= length
        return True


def is_exchangeable(value: object) -> bool:
    """Whether a value is a tensor of another library that says where it lies; arrays of NumPy are taken as they are."""
    if isinstance(value, np.ndarray):
        return False
    return hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__")


def is_on_device(value: object) -> bool:
    """Whether a value is a tensor in the memory of a GPU."""
    if not is_exchangeable(value):
        return False
    device = getattr(value, "__dlpack_device__", None)
    if device is None:
        return True
    try:
        return int(device()[0]) in (_CUDA, _CUDA_MANAGED)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return False  # what it says when it is asked for its memory tells more


def host_array(what: str, value: Any) -> np.ndarray:
    """A tensor on the host as an array in the same memory; raises `InvalidInputError` that names it (`what`)."""
    if is_on_device(value):
        raise InvalidInputError(
            f"{what}: the tensor lies on a GPU, expected the host's memory: move it by .cpu(), or build for 'cuda' and "
            "give outputs= that lie on the GPU, too"
        )
    lent = lent_array(value)
    if lent is not None and lent.dtype.kind != "c":
        return lent
    found = exchanged(what, value, None)
    if not found.device.startswith((_NAMES[_CPU], _NAMES[_CUDA_HOST])):
        raise InvalidInputError(f"{what}: the tensor lies on the device {found.device}, expected the host's memory")
    size = 1 + sum((n - 1) * stride for n, stride in zip(found.shape, found.strides, strict=True))
    if 0 in found.shape:
        return np.empty(found.shape, numpy_dtype(found.dtype))
    buffer = (ctypes.c_char * (size - 1 + numpy_dtype(found.dtype).itemsize)).from_address(found.address)
    setattr(buffer, "owner", found.owner)  # the array keeps the buffer
    return np.ndarray(found.shape, numpy_dtype(found.dtype), memoryview(buffer), 0, found.strides)


def exchanged(what: str, value: Any, stream: int | None) -> ExchangedTensor:
    """Where a tensor lies. What its library has queued for it comes before what comes on `stream` (a CUDA handle)."""
    if not hasattr(value, "__dlpack__"):
        return _by_cuda_array_interface(what, value)
    offer = cast("Callable[..., object]", value.__dlpack__)
    try:
        # The protocol calls the legacy default stream 1.
        capsule = offer() if stream is None else offer(stream=stream or 1)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidInputError(f"{what}: the tensor cannot be exchanged: {' '.join(str(error).split())}") from error
    lease = _Lease(capsule)
    tensor = lease.managed.tensor
    dtype = _dtype(what, tensor)
    shape = tuple(int(tensor.shape[k]) for k in range(tensor.ndim))
    width = numpy_dtype(dtype).itemsize
    strides = _dense(shape, width)
    if tensor.strides:
        strides = tuple(width * int(tensor.strides[k]) for k in range(tensor.ndim))
    device = f"{_NAMES.get(tensor.device_type, tensor.device_type)}:{tensor.device_id}"
    return ExchangedTensor(device, int(tensor.data or 0) + tensor.byte_offset, dtype, shape, strides, (lease, value))


def _dtype(what: str, tensor: _DLTensor) -> str:
    key = (int(tensor.code), int(tensor.bits))
    name = _OTHERS.get(key) or (f"{_WORDS[key[0]]}{key[1]}" if key[0] in _WORDS else "")
    try:
        numpy_dtype(name)
    except (KeyError, TypeError, AttributeError, ValueError):
        name = ""
    if not name or tensor.lanes != 1:
        raise InvalidInputError(f"{what}: the tensor's elements (DLPack's type {key}) are none that networks have")
    return name


def _by_cuda_array_interface(what: str, value: Any) -> ExchangedTensor:
    interface = cast("dict[str, Any]", value.__cuda_array_interface__)
    if interface.get("mask") is not None:
        raise InvalidInputError(f"{what}: the tensor has a mask, which networks have not")
    dtype = np.dtype(interface["typestr"])
    shape = tuple(int(n) for n in interface["shape"])
    strides = interface.get("strides")
    given = _dense(shape, dtype.itemsize) if strides is None else tuple(int(stride) for stride in strides)
    return ExchangedTensor("gpu", int(interface["data"][0]), dtype.name, shape, given, value)


def _dense(shape: tuple[int, ...], width: int) -> tuple[int, ...]:
    strides: list[int] = []
    for length in reversed(shape):
        strides.insert(0, width)
        width *= length
    return tuple(strides)
