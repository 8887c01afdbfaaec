"""Tensors from one GPU of this process to another, by NCCL through ctypes.

`libnccl` is in the package nvidia-nccl-cu13, which PyTorch brings along. One communicator has all GPUs; each is used by
the thread of its GPU alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_void_p
from typing import Any

from mlirt.errors import PlanError
from mlirt.runtime.driver_interface import DeviceError
from mlirt.runtime.shared_libraries import load_shared

_NAMES = ("libnccl.so.2",)
_INT8 = 0  # ncclInt8: bytes, whatever they mean


class Communicator:
    """One GPU's end: its number among all is its rank."""

    def __init__(self, library: Any, handle: c_void_p, rank: int) -> None:
        self._library, self._handle, self.rank = library, handle, rank

    def send(self, address: int, size: int, to: int, stream: int) -> None:
        """Queue so many bytes for the GPU of rank `to`; they leave when it has queued to receive them."""
        _check(self._library, self._library.ncclSend(address, size, _INT8, to, self._handle, stream))

    def receive(self, address: int, size: int, source: int, stream: int) -> None:
        """Queue the writing of so many bytes that the GPU of rank `source` sends."""
        _check(self._library, self._library.ncclRecv(address, size, _INT8, source, self._handle, stream))

    def close(self) -> None:
        """Give back what the library holds; nothing may be under way."""
        self._library.ncclCommDestroy(self._handle)


def communicators(devices: Sequence[int]) -> list[Communicator]:
    """The ends of all these GPUs of the process, by CUDA's numbers.

    Raises `PlanError` where NCCL is not installed, `DeviceError` where it refuses the devices.
    """
    library = load_shared(_NAMES)
    if library is None:
        raise PlanError("stages on several GPUs need NCCL, which is not here: install the package nvidia-nccl-cu13")
    _declare(library)
    handles, numbers = (c_void_p * len(devices))(), (c_int * len(devices))(*devices)
    _check(library, library.ncclCommInitAll(handles, len(devices), numbers))
    return [Communicator(library, c_void_p(handle), rank) for rank, handle in enumerate(handles)]


def _declare(library: Any) -> None:
    library.ncclCommInitAll.argtypes = [POINTER(c_void_p), c_int, POINTER(c_int)]
    for call in (library.ncclSend, library.ncclRecv):
        call.argtypes = [c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p]
    library.ncclCommDestroy.argtypes = [c_void_p]
    library.ncclGetErrorString.argtypes, library.ncclGetErrorString.restype = [c_int], c_char_p


def _check(library: Any, status: int) -> None:
    if status:
        raise DeviceError(f"NCCL: {ctypes.string_at(library.ncclGetErrorString(status)).decode()}")
