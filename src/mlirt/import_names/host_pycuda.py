"""`pycuda.driver` on the host's memory: what scripts around an engine call, for engines on the CPU.

Addresses are the host's; what is queued on a stream is done when the call returns.
"""

from __future__ import annotations

import time
from typing import Any, TypeAlias

import numpy as np

from mlirt import host_cudart

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


class Error(Exception):
    """A call that went wrong."""


class LogicError(Error):
    """A call with arguments that cannot be right."""


class MemoryError(Error):
    """There is no memory left."""


class DeviceAllocation:
    """Memory that lasts as long as this object; `int()` of it is its address."""

    def __init__(self, size: int) -> None:
        code, address = host_cudart.cudaMalloc(int(size))
        if address is None:
            raise MemoryError(f"cuMemAlloc failed: out of memory ({code.name}, {size} bytes)")
        self._address = address
        self._lives = True

    def __int__(self) -> int:
        return self._address

    __index__ = __int__

    def free(self) -> None:
        """Give the memory back; raises `LogicError` where it was given back."""
        if not self._lives:
            raise LogicError("cuMemFree failed: invalid argument")
        self._lives = False
        host_cudart.cudaFree(self._address)

    def __del__(self) -> None:
        if getattr(self, "_lives", False):
            self.free()


class Stream:
    """An order of work in which nothing ever waits."""

    def __init__(self, flags: int = 0) -> None:
        self.handle = host_cudart.cudaStreamCreate()[1]

    def synchronize(self) -> None:
        """Return: all is done."""

    def is_done(self) -> bool:
        return True

    def wait_for_event(self, event: Event) -> None:
        """Return: all is done."""


class Event:
    """A moment."""

    def __init__(self, flags: int = 0) -> None:
        self._moment = 0.0

    def record(self, stream: Stream | None = None) -> Event:
        self._moment = time.perf_counter()
        return self

    def synchronize(self) -> Event:
        return self

    def query(self) -> bool:
        return True

    def time_since(self, event: Event) -> float:
        """Milliseconds."""
        return (self._moment - event._moment) * 1e3

    def time_till(self, event: Event) -> float:
        """Milliseconds."""
        return event.time_since(self)


class Context:
    """A context, which all threads share here."""

    @staticmethod
    def synchronize() -> None:
        """Return: all is done."""

    def push(self) -> None:
        """Nothing: there is one context."""

    @staticmethod
    def pop() -> None:
        """Nothing: there is one context."""

    def detach(self) -> None:
        """Nothing: there is one context."""


class Device:
    """The host in the place of a device."""

    def __init__(self, number: int) -> None:
        if number != 0:
            raise LogicError("cuDeviceGet failed: invalid device ordinal")

    @staticmethod
    def count() -> int:
        return 1

    def name(self) -> str:
        return "host memory (mlirt)"

    def make_context(self, flags: int = 0) -> Context:
        return Context()

    def retain_primary_context(self) -> Context:
        return Context()


class _ContextFlags:
    """Bits that change nothing."""

    SCHED_AUTO = 0
    MAP_HOST = 8


class _HostAllocFlags:
    """Bits that change nothing."""

    PORTABLE = 1
    DEVICEMAP = 2
    WRITECOMBINED = 4


ctx_flags, host_alloc_flags = _ContextFlags, _HostAllocFlags


def init(flags: int = 0) -> None:
    """Nothing: the host is ready."""


def mem_alloc(size: int) -> DeviceAllocation:
    """Raises this module's `MemoryError` where there is none left."""
    return DeviceAllocation(size)


def to_device(array: Array) -> DeviceAllocation:
    """New memory with the bytes of an array."""
    memory = mem_alloc(array.nbytes)
    memcpy_htod(memory, array)
    return memory


def pagelocked_empty(shape: Any, dtype: Any, order: Any = "C", mem_flags: int = 0) -> Array:
    return np.empty(shape, dtype, order)


def pagelocked_zeros(shape: Any, dtype: Any, order: Any = "C", mem_flags: int = 0) -> Array:
    return np.zeros(shape, dtype, order)


def memcpy_htod(dest: Any, src: Any) -> None:
    """Copy an array to an address; raises `LogicError` where it does not fit."""
    source = np.ascontiguousarray(np.frombuffer(src, np.uint8) if isinstance(src, bytes | bytearray) else src)
    _copy(int(dest), source, source.nbytes)


def memcpy_dtoh(dest: Array, src: Any) -> None:
    """Fill an array from an address; raises `LogicError` where it does not lie there."""
    _copy(dest, int(src), dest.nbytes)


def memcpy_dtod(dest: Any, src: Any, size: int) -> None:
    _copy(int(dest), int(src), size)


def memcpy_htod_async(dest: Any, src: Any, stream: Stream | None = None) -> None:
    memcpy_htod(dest, src)


def memcpy_dtoh_async(dest: Array, src: Any, stream: Stream | None = None) -> None:
    memcpy_dtoh(dest, src)


def memcpy_dtod_async(dest: Any, src: Any, size: int, stream: Stream | None = None) -> None:
    memcpy_dtod(dest, src, size)


def memset_d8(dest: Any, data: int, count: int) -> None:
    host_cudart.cudaMemset(int(dest), data, count)


def _copy(target: Any, source: Any, size: int) -> None:
    (code,) = host_cudart.cudaMemcpy(target, source, size, host_cudart.cudaMemcpyKind.cudaMemcpyDefault)
    if code:
        raise LogicError(f"cuMemcpy failed: invalid argument ({code.name})")
