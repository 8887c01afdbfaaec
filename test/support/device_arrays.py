"""Arrays, streams and events on a GPU, as a program has them that runs engines on memory of its own.

A stream can be closed: what is queued on it waits until the test opens it, so that the test decides what comes first.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from layer_networks import Array

import mlirt as trt
from mlirt.runtime.cuda_driver import open_driver
from mlirt.runtime.driver_interface import Driver

SECONDS = 5.0
"""After this time a closed stream opens by itself, and what should have happened meanwhile has not."""
_NOT_READY = 600
_HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DeviceArrays:
    """What a test has on the device that is current; nothing is given back before the test ends."""

    def __init__(self, driver: Driver | None = None) -> None:
        self.driver: Driver = driver or open_driver()
        self.driver.activate()
        self._own = self.driver.new_stream()
        self._calls: list[Any] = []

    def stream(self) -> int:
        return self.driver.new_stream()

    def put(self, array: Array) -> int:
        """The address of a copy."""
        address = self.driver.allocate(array.nbytes)
        self.set(address, array)
        return address

    def empty(self, shape: tuple[int, ...], dtype: type[np.generic] = np.float32) -> int:
        """Memory for an array, whose bytes are all 0x7F."""
        return self.put(np.full(int(np.prod(shape)) * np.dtype(dtype).itemsize, 0x7F, np.uint8))

    def set(self, address: int, array: Array) -> None:
        contiguous = np.ascontiguousarray(array)
        self.driver.copy_to_device(address, contiguous.ctypes.data, contiguous.nbytes, self._own)
        self.driver.synchronize(self._own)

    def get(self, address: int, shape: tuple[int, ...], dtype: type[np.generic] = np.float32) -> Array:
        array = np.empty(shape, dtype)
        self.driver.copy_to_host(array.ctypes.data, address, array.nbytes, self._own)
        self.driver.synchronize(self._own)
        return array

    def event_behind(self, stream: int) -> int:
        """An event that is done when what is on the stream now is."""
        event = self.driver.new_event()
        self.driver.record(event, stream)
        return event

    def is_done(self, event: int) -> bool:
        status = _library().cuEventQuery(ctypes.c_void_p(event))
        assert status in (0, _NOT_READY), status
        return status == 0

    def becomes_done(self, event: int, seconds: float = SECONDS / 2) -> bool:
        """Whether it is within some time."""
        end = time.perf_counter() + seconds
        while not self.is_done(event):
            if time.perf_counter() > end:
                return False
            time.sleep(0.001)
        return True

    def wait_on(self, stream: int, opened: threading.Event) -> None:
        """Let what comes on a stream wait for the host."""

        def hold(_: int | None) -> None:
            opened.wait(SECONDS)

        call = _HOST_FUNCTION(hold)
        self._calls.append(call)
        status = _library().cuLaunchHostFunc(ctypes.c_void_p(stream), call, None)
        assert status == 0, status

    @contextmanager
    def closed(self, stream: int) -> Generator[threading.Event]:
        """Let what is queued on a stream inside wait until the event is set, or the end; then all of it is over."""
        gc.collect()  # memory that is given back meanwhile would wait for the stream
        opened = threading.Event()
        self.wait_on(stream, opened)
        try:
            yield opened
        finally:
            opened.set()
            self.driver.synchronize(stream)

    def captured(self, stream: int, queue: Callable[[], bool]) -> tuple[bool, int]:
        """What `queue` returned, and the graph of what it put on the stream."""
        self.driver.begin_capture(stream)
        try:
            done = queue()
        finally:
            graph = self.driver.end_capture(stream)
        return done, graph


def bind(context: trt.IExecutionContext, addresses: Mapping[str, int], **shapes: tuple[int, ...]) -> None:
    """Give a context the shapes of its inputs and the addresses of all tensors."""
    for name, shape in shapes.items():
        assert context.set_input_shape(name, shape)
    for name, address in addresses.items():
        assert context.set_tensor_address(name, address)


def _library() -> Any:
    return ctypes.CDLL("libcuda.so.1")


__all__ = ["SECONDS", "DeviceArrays", "bind"]
