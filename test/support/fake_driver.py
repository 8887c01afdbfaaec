"""A CUDA driver that keeps device memory on the host and runs Python functions as kernels, and a plan for it."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlirt.runtime.driver_interface import DeviceError
from mlirt.runtime.library_calls import LibraryCall, Queue
from mlirt.runtime.plan_file import Plan, make_plan
from mlirt.runtime.tensor_maps import EncodedMap, MapLayout

Maker = Callable[[], Any]


def floats(address: int, count: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address)) if count else np.empty(0, np.float32)


def scale(x: int, y: int, count: int, factor: float, addend: float) -> None:
    floats(y, count)[:] = floats(x, count) * np.float32(factor) + np.float32(addend)


def reverse(x: int, y: int, count: int) -> None:
    floats(y, count)[:] = np.cos(floats(x, count)[::-1])


KERNELS: dict[str, tuple[Callable[..., None], list[Any]]] = {
    "scale": (scale, [*[ctypes.c_uint64] * 2, ctypes.c_int64, ctypes.c_double, ctypes.c_float]),
    "reverse": (reverse, [*[ctypes.c_uint64] * 2, ctypes.c_int32]),
}


class FakeProducts:
    """Multiplies with NumPy at host addresses: float32 matrices in row-major order."""

    def __init__(self, driver: FakeDriver) -> None:
        self.driver = driver
        self.asked: list[LibraryCall] = []

    def prepare(self, what: LibraryCall, addresses: Sequence[int], numbers: Sequence[int]) -> Queue:
        self.asked.append(what)
        rows, columns, depth, *_ = numbers

        def work() -> None:
            left, right = floats(addresses[0], rows * depth), floats(addresses[1], depth * columns)
            floats(addresses[2], rows * columns)[:] = (left.reshape(rows, -1) @ right.reshape(depth, -1)).reshape(-1)

        return lambda stream: self.driver.queue(work)


@dataclass
class FakeDriver:
    """Streams run at once; captured work runs at replay; what is freed or unknown is an error."""

    capability: tuple[int, int] = (9, 0)
    shared_bytes: int = 0
    """That a block may have; 0 is not told."""
    memory: dict[int, Any] = field(default_factory=dict[int, Any])
    pinned: list[int] = field(default_factory=list[int])
    """The sizes of the pinned blocks that were ever asked for."""
    pinned_at: dict[int, int] = field(default_factory=dict[int, int])
    """The sizes of those that are there, by address."""
    copied_from: list[int] = field(default_factory=list[int])
    """The addresses of the host that were copied to the device."""
    modules: list[int] = field(default_factory=list[int])
    codes: list[bytes] = field(default_factory=list[bytes])
    """What was loaded as modules."""
    streams: list[int] = field(default_factory=list[int])
    events: list[int] = field(default_factory=list[int])
    functions: list[str] = field(default_factory=list[str])
    shared: dict[str, int] = field(default_factory=dict[str, int])
    captured: list[Callable[[], object]] | None = None
    graphs: dict[int, list[Callable[[], object]]] = field(default_factory=dict[int, list[Callable[[], object]]])
    launches: list[tuple[str, Any, Any, int]] = field(default_factory=list[tuple[str, Any, Any, int]])
    maps: list[tuple[MapLayout, int]] = field(default_factory=list[tuple[MapLayout, int]])
    dependent: list[bool] = field(default_factory=list[bool])
    cooperative: list[bool] = field(default_factory=list[bool])
    replays: Counter[int] = field(default_factory=Counter[int])
    time: int = 0
    stamps: dict[int, int] = field(default_factory=dict[int, int])
    handles: int = 100

    ordinal: int = 0
    current: int = 0
    """The device that is current, of as many as a test has in mind."""
    is_lazy: bool = False
    capturing: set[int] = field(default_factory=set[int])
    """The streams of a caller that are captured."""

    def activate(self) -> None:
        self.current = self.ordinal

    def enter(self) -> int:
        before, self.current = self.current, self.ordinal
        return before

    def leave(self, before: int | None) -> None:
        self.current = before or 0

    def loads_lazily(self) -> bool:
        return self.is_lazy

    def is_captured(self, stream: int) -> bool:
        return stream in self.capturing

    def conditional_graphs(self) -> None:
        """An old driver: the host decides."""

    def library(self, name: str) -> FakeProducts:
        self.products = FakeProducts(self)
        return self.products

    def describe(self) -> str:
        return "fake device"

    def total_memory(self) -> int:
        return 1 << 30

    def used_memory(self) -> int:
        return 1 << 20

    def cache_bytes(self) -> int:
        return 1 << 25

    def processors(self) -> int:
        return 132

    def name(self) -> str:
        return "Fake"

    def figures(self) -> dict[str, float]:
        """132 processors, and the shared memory of a block; nothing else is told."""
        return {"processors": 132, "clock_mhz": 0, "shared_bytes": self.shared_bytes, "memory_gb_s": 0}

    def compute_capability(self) -> tuple[int, int]:
        return self.capability

    def allocate(self, size: int) -> int:
        block = np.full(max(size, 1) + 256, 0xAB, np.uint8)
        address = block.ctypes.data + (-block.ctypes.data % 256)
        self.memory[address] = block
        return address

    def free(self, address: int) -> None:
        del self.memory[address]

    def allocate_pinned(self, size: int) -> int:
        self.pinned.append(size)
        address = self.allocate(size)
        self.pinned_at[address] = size
        return address

    def free_pinned(self, address: int) -> None:
        del self.pinned_at[address]
        self.free(address)

    def is_pinned(self, address: int) -> bool:
        return any(start <= address < start + size for start, size in self.pinned_at.items())

    def load_module(self, code: bytes) -> int:
        self.codes.append(code)
        self.modules.append(self.new_handle())
        return self.modules[-1]

    def unload_module(self, module: int) -> None:
        self.modules.remove(module)

    def function(self, module: int, symbol: str, shared_bytes: int) -> int:
        assert module in self.modules
        if symbol not in KERNELS:
            raise DeviceError("CUDA: cuModuleGetFunction: not found")
        self.functions.append(symbol)
        self.shared[symbol] = shared_bytes
        return len(self.functions) - 1

    def new_handle(self) -> int:
        self.handles += 1
        return self.handles

    def new_stream(self) -> int:
        self.streams.append(self.new_handle())
        return self.streams[-1]

    def free_stream(self, stream: int) -> None:
        self.streams.remove(stream)

    def new_event(self) -> int:
        self.events.append(self.new_handle())
        return self.events[-1]

    def free_event(self, event: int) -> None:
        self.events.remove(event)

    def queue(self, work: Callable[[], object]) -> None:
        if self.captured is None:
            self.time += 1
            work()
        else:
            self.captured.append(work)

    def copy_to_device(self, device: int, host: int, size: int, stream: int) -> None:
        self.copied_from.append(host)
        self.queue(lambda: ctypes.memmove(device, host, size))

    def copy_pinned_to_device(self, device: int, host: int, size: int, stream: int) -> None:
        self.copy_to_device(device, host, size, stream)

    def copy_to_host(self, host: int, device: int, size: int, stream: int) -> None:
        self.queue(lambda: ctypes.memmove(host, device, size))

    def copy_on_device(self, to: int, source: int, size: int, stream: int) -> None:
        self.queue(lambda: ctypes.memmove(to, source, size))

    def fill(self, device: int, size: int, byte: int, stream: int) -> None:
        self.queue(lambda: ctypes.memset(device, byte, size))

    def encode_map(self, layout: MapLayout, address: int) -> EncodedMap:
        self.maps.append((layout, address))
        return EncodedMap((address,))

    def launch(
        self,
        function: int,
        grid: Any,
        block: Any,
        shared_bytes: int,
        stream: int,
        args: Any,
        dependent: bool = False,
        cooperative: bool = False,
    ) -> None:
        name = self.functions[function]
        self.dependent.append(dependent)
        self.cooperative.append(cooperative)
        work, types = KERNELS[name]
        values = [kind.from_address(args[i]).value for i, kind in enumerate(types)]
        self.launches.append((name, grid, block, shared_bytes))
        self.queue(lambda: work(*values))

    def begin_capture(self, stream: int) -> None:
        self.captured = []

    def end_capture(self, stream: int) -> int:
        graph, self.captured = self.captured or [], None
        handle = self.new_handle()
        self.graphs[handle] = graph
        return handle

    def replay(self, graph: int, stream: int) -> None:
        self.replays[graph] += 1
        for work in self.graphs[graph]:
            self.queue(work)

    def free_graph(self, graph: int) -> None:
        del self.graphs[graph]

    def wait(self, stream: int, event: int) -> None:
        """Work runs in the order in which it is queued, so that nothing is left to wait for."""

    def record(self, event: int, stream: int) -> None:
        self.stamps[event] = self.time

    def elapsed_ms(self, start: int, end: int) -> float:
        if end not in self.stamps:
            raise DeviceError("CUDA: cuEventElapsedTime: the event was never recorded")
        return float(self.stamps[end] - self.stamps[start])

    def synchronize(self, stream: int) -> None:
        assert self.captured is None


def cuda_plan(tiny: Maker, change: Callable[[dict[str, Any]], None] | None = None) -> Plan:
    """The tiny plan for CUDA: other argument types, grids, code for two architectures."""
    parts = tiny()
    manifest = parts.manifest
    manifest["target"] = {"kind": "cuda", "arch": "sm_90a"}
    manifest["main"] = None
    scale_kernel, reverse_kernel = manifest["kernels"]
    scale_kernel |= {
        "args": ["ptr", "ptr", "i64", "f64", "f32"],
        "object": {"sm_80": "scale.o", "sm_90a": "reverse.o"},
        "block": [128, 1, 1],
        "shared_bytes": 65536,
    }
    reverse_kernel |= {"args": ["ptr", "ptr", "i32"], "block": [32, 4, 1]}
    for launch in manifest["launches"]:
        launch["grid"] = ["n", 1, 1]
    if change:
        change(manifest)
    return make_plan(manifest, parts.sections, parts.weights)


__all__ = ["KERNELS", "FakeDriver", "Maker", "cuda_plan"]
