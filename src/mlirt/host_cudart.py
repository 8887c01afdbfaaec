"""The calls of CUDA's runtime that scripts make around an engine, on the host's memory, for engines on the CPU.

`from mlirt import host_cudart as cudart` takes the place of `from cuda import cudart`: each function takes and returns
what cuda-python's does, an error first. Streams and events are numbers; what is queued is done when the call returns.
"""

from __future__ import annotations

import ctypes
import itertools
import time
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    Memory: TypeAlias = "int | np.ndarray[Any, np.dtype[Any]]"

_ALIGNMENT = 256  # of what cudaMalloc gives


class cudaError_t(IntEnum):
    """How a call went."""

    cudaSuccess = 0
    cudaErrorInvalidValue = 1
    cudaErrorMemoryAllocation = 2
    cudaErrorInvalidResourceHandle = 400


class cudaMemcpyKind(IntEnum):
    """From where to where; all of it is the host's memory here."""

    cudaMemcpyHostToHost = 0
    cudaMemcpyHostToDevice = 1
    cudaMemcpyDeviceToHost = 2
    cudaMemcpyDeviceToDevice = 3
    cudaMemcpyDefault = 4


_DONE = (cudaError_t.cudaSuccess,)
_WRONG = (cudaError_t.cudaErrorInvalidValue,)
_handles = itertools.count(1)
_memory: dict[int, np.ndarray[Any, np.dtype[np.uint8]]] = {}
_events: dict[int, float] = {}


def cudaMalloc(size: int) -> tuple[cudaError_t, int | None]:
    """The address of new memory, aligned as that of a GPU; None where there is none left."""
    try:
        block = np.empty(size + _ALIGNMENT, np.uint8)
    except (MemoryError, ValueError):
        return cudaError_t.cudaErrorMemoryAllocation, None
    skipped = -block.ctypes.data % _ALIGNMENT
    aligned = block[skipped : skipped + size]
    address = block.ctypes.data + skipped
    _memory[address] = aligned
    return cudaError_t.cudaSuccess, address


def cudaMallocAsync(size: int, hStream: int = 0) -> tuple[cudaError_t, int | None]:
    return cudaMalloc(size)


def cudaMallocHost(size: int) -> tuple[cudaError_t, int | None]:
    return cudaMalloc(size)


def cudaHostAlloc(size: int, flags: int = 0) -> tuple[cudaError_t, int | None]:
    return cudaMalloc(size)


def cudaFree(devPtr: Memory) -> tuple[cudaError_t]:
    """An invalid value for an address that `cudaMalloc` did not give, or that is free already; 0 is none."""
    address = _address(devPtr)
    return _DONE if address == 0 or _memory.pop(address, None) is not None else _WRONG


def cudaFreeAsync(devPtr: Memory, hStream: int = 0) -> tuple[cudaError_t]:
    return cudaFree(devPtr)


def cudaFreeHost(ptr: Memory) -> tuple[cudaError_t]:
    return cudaFree(ptr)


def cudaMemcpy(dst: Memory, src: Memory, count: int, kind: cudaMemcpyKind) -> tuple[cudaError_t]:
    """An invalid value for what does not lie inside the memory that it begins in."""
    if not _holds(dst, count) or not _holds(src, count):
        return _WRONG
    ctypes.memmove(_address(dst), _address(src), count)
    return _DONE


def cudaMemcpyAsync(dst: Memory, src: Memory, count: int, kind: cudaMemcpyKind, stream: int = 0) -> tuple[cudaError_t]:
    return cudaMemcpy(dst, src, count, kind)


def cudaMemset(devPtr: Memory, value: int, count: int) -> tuple[cudaError_t]:
    if not _holds(devPtr, count):
        return _WRONG
    ctypes.memset(_address(devPtr), value, count)
    return _DONE


def cudaMemsetAsync(devPtr: Memory, value: int, count: int, stream: int = 0) -> tuple[cudaError_t]:
    return cudaMemset(devPtr, value, count)


def cudaStreamCreate() -> tuple[cudaError_t, int]:
    return cudaError_t.cudaSuccess, next(_handles)


def cudaStreamCreateWithFlags(flags: int) -> tuple[cudaError_t, int]:
    return cudaStreamCreate()


def cudaStreamSynchronize(stream: int) -> tuple[cudaError_t]:
    return _DONE


def cudaStreamDestroy(stream: int) -> tuple[cudaError_t]:
    return _DONE


def cudaDeviceSynchronize() -> tuple[cudaError_t]:
    return _DONE


def cudaSetDevice(device: int) -> tuple[cudaError_t]:
    return _DONE if device == 0 else _WRONG


def cudaEventCreate() -> tuple[cudaError_t, int]:
    return cudaError_t.cudaSuccess, next(_handles)


def cudaEventRecord(event: int, stream: int = 0) -> tuple[cudaError_t]:
    _events[event] = time.perf_counter()
    return _DONE


def cudaEventSynchronize(event: int) -> tuple[cudaError_t]:
    return _DONE


def cudaEventElapsedTime(start: int, end: int) -> tuple[cudaError_t, float | None]:
    """Milliseconds between two events that were recorded."""
    if start not in _events or end not in _events:
        return cudaError_t.cudaErrorInvalidResourceHandle, None
    return cudaError_t.cudaSuccess, (_events[end] - _events[start]) * 1e3


def cudaEventDestroy(event: int) -> tuple[cudaError_t]:
    _events.pop(event, None)
    return _DONE


def cudaGetErrorName(error: cudaError_t) -> tuple[cudaError_t, bytes]:
    return cudaError_t.cudaSuccess, cudaError_t(error).name.encode()


def cudaGetErrorString(error: cudaError_t) -> tuple[cudaError_t, bytes]:
    return cudaGetErrorName(error)


def _address(memory: Memory) -> int:
    return memory.ctypes.data if isinstance(memory, np.ndarray) else int(memory)


def _holds(memory: Memory, count: int) -> bool:
    """Whether memory has so many bytes, as far as one can know: an address from elsewhere is taken at its word."""
    if isinstance(memory, np.ndarray):
        return memory.flags.c_contiguous and 0 <= count <= memory.nbytes
    address = int(memory)
    if not address or count < 0:
        return count == 0
    return all(
        not start <= address < start + block.size or address + count <= start + block.size
        for start, block in list(_memory.items())
    )
