"""The part of the CUDA driver that the runtime uses, through ctypes on libcuda alone; opened on first use."""

import ctypes
import os
from ctypes import addressof, byref, c_char_p, c_float, c_int, c_size_t, c_uint64, c_void_p
from functools import cache
from typing import Any

from mlirt.runtime.conditional_graphs import DriverGraphs, GraphMaker
from mlirt.runtime.cublas_lt import open_cublas_lt
from mlirt.runtime.cudnn import open_cudnn
from mlirt.runtime.current_device import current_ordinal
from mlirt.runtime.driver_calls import LaunchAttribute, LaunchConfig, declare_driver, held_calls
from mlirt.runtime.driver_interface import DeviceError, Handle, NoDeviceError, Size3
from mlirt.runtime.library_calls import Library
from mlirt.runtime.pinned_ranges import PinnedRanges
from mlirt.runtime.tensor_maps import EncodedMap, MapLayout, encode

_SUCCESS = 0
_PROCESSORS, _L2_BYTES, _MAJOR, _MINOR = 16, 38, 75, 76
_CLOCK_KHZ, _MEMORY_KHZ, _MEMORY_BITS, _MAX_SHARED_BYTES = 13, 36, 37, 97
_MAX_DYNAMIC_SHARED = 8
_PORTABLE_HOST_MEMORY = 1
_MEMORY_TYPE, _HOST_MEMORY = 2, 1  # an attribute of pointers, and its value for pinned memory
_NON_BLOCKING = 1
_RELAXED_CAPTURE = 2  # memory may be freed meanwhile, as the garbage collector likes
_MODULE_LOADING, _LAZY = "CUDA_MODULE_LOADING", 2
_MPS_LIMIT = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
_COOPERATIVE, _PROGRAMMATIC_SERIALIZATION = 2, 6  # launch attributes


class CudaDriver:
    """A device of libcuda, in its primary context (shared with other libraries of the process)."""

    def __init__(self, library: Any, ordinal: int = 0) -> None:
        self._cuda = library
        declare_driver(library)
        self._held = held_calls(library)
        self._pinned = PinnedRanges()
        self._check("cuInit", library.cuInit(0))
        count = c_int()
        self._check("cuDeviceGetCount", library.cuDeviceGetCount(byref(count)))
        if count.value <= ordinal:
            found = f"no device {ordinal}, of {count.value} CUDA devices" if count.value else "no CUDA device"
            raise NoDeviceError(f"the plan was built for CUDA, but this machine has {found}; build it for the CPU")
        self.ordinal, self._is_one_of_several = ordinal, count.value > 1
        self._device = c_int()
        self._check("cuDeviceGet", library.cuDeviceGet(byref(self._device), ordinal))
        self._context = c_void_p()
        self._check("cuDevicePrimaryCtxRetain", library.cuDevicePrimaryCtxRetain(byref(self._context), self._device))

    def _check(self, call: str, status: int) -> None:
        if status == _SUCCESS:
            return
        name, text = c_char_p(), c_char_p()
        self._cuda.cuGetErrorName(status, byref(name))
        self._cuda.cuGetErrorString(status, byref(text))
        reason = f"{(name.value or b'unknown error').decode()} ({status}): {(text.value or b'').decode()}"
        raise DeviceError(f"CUDA: {call}: {reason}")

    def activate(self) -> None:
        """Make the device's context current in this thread."""
        self._check("cuCtxSetCurrent", self._cuda.cuCtxSetCurrent(self._context))

    def enter(self) -> Handle | None:
        """As `activate`; what is returned says to `leave` which device was current, where there are several."""
        before = c_void_p()
        if self._is_one_of_several:
            self._check("cuCtxGetCurrent", self._cuda.cuCtxGetCurrent(byref(before)))
        self.activate()
        # With no context device 0 is current, so that none is left current only behind another one.
        return (before.value or 0) if self._is_one_of_several and (before.value or self.ordinal) else None

    def leave(self, before: Handle | None) -> None:
        """Make the device current again that was so when the thread entered this one."""
        if before is not None and before != self._context.value:
            self._check("cuCtxSetCurrent", self._cuda.cuCtxSetCurrent(before))

    def loads_lazily(self) -> bool:
        """Whether code is to be loaded when it is first needed: CUDA_MODULE_LOADING=LAZY, and the driver does so too.

        Drivers before CUDA 11.7 load all of a module at once (tensorrt-features.md#13.24).
        """
        mode = c_int()
        if os.environ.get(_MODULE_LOADING, "").strip().upper() != "LAZY" or not self._offers("cuModuleGetLoadingMode"):
            return False
        self._check("cuModuleGetLoadingMode", self._cuda.cuModuleGetLoadingMode(byref(mode)))
        return mode.value == _LAZY

    def _offers(self, name: str) -> bool:
        return getattr(self._cuda, name, None) is not None

    def describe(self) -> str:
        """Such as `NVIDIA H200, 132 processors, driver 13000`, and the part of them that MPS leaves the process.

        Times of kernels are kept by it, so that those of a whole device are not taken for a part, nor the other way
        (tensorrt-features.md#21.10).
        """
        version = c_int()
        self._check("cuDriverGetVersion", self._cuda.cuDriverGetVersion(byref(version)))
        limit = os.environ.get(_MPS_LIMIT, "").strip()
        part = f", {limit} % of its threads" if limit else ""
        return f"{self.name()}, {self.processors()} processors, driver {version.value}{part}"

    def name(self) -> str:
        """Such as `NVIDIA H200`."""
        name = ctypes.create_string_buffer(256)
        self._check("cuDeviceGetName", self._cuda.cuDeviceGetName(name, len(name), self._device))
        return name.value.decode()

    def figures(self) -> dict[str, float]:
        """What the driver tells of the device: its multiprocessors, clock (MHz), shared memory of a block, cache, and
        the bandwidth of its memory (GB/s), which moves its bits twice in a cycle; 0 for what it does not tell.
        """
        return {
            "processors": self.processors(),
            "clock_mhz": self._attribute(_CLOCK_KHZ) / 1e3,
            "shared_bytes": self._attribute(_MAX_SHARED_BYTES),
            "memory_gb_s": 2 * self._attribute(_MEMORY_KHZ) * self._attribute(_MEMORY_BITS) / 8 / 1e6,
        }

    def compute_capability(self) -> tuple[int, int]:
        """(major, minor), such as (9, 0)."""
        return self._attribute(_MAJOR), self._attribute(_MINOR)

    def total_memory(self) -> int:
        """Bytes of the device's memory."""
        size = c_size_t()
        self._check("cuDeviceTotalMem", self._cuda.cuDeviceTotalMem_v2(byref(size), self._device))
        return size.value

    def used_memory(self) -> int:
        """Bytes of the device's memory that somebody uses."""
        free, total = c_size_t(), c_size_t()
        self.activate()
        self._check("cuMemGetInfo", self._cuda.cuMemGetInfo_v2(byref(free), byref(total)))
        return total.value - free.value

    def cache_bytes(self) -> int:
        """The size of the cache that all processors share."""
        return self._attribute(_L2_BYTES)

    def processors(self) -> int:
        """How many multiprocessors the device has."""
        return self._attribute(_PROCESSORS)

    def _attribute(self, number: int) -> int:
        value = c_int()
        self._check("cuDeviceGetAttribute", self._cuda.cuDeviceGetAttribute(byref(value), number, self._device))
        return value.value

    def allocate(self, size: int) -> int:
        """Device memory, aligned to at least 256 bytes."""
        address = c_uint64()
        self._check(f"cuMemAlloc of {size} bytes", self._cuda.cuMemAlloc_v2(byref(address), max(size, 1)))
        return address.value

    def free(self, address: int) -> None:
        """Give device memory back."""
        self._check("cuMemFree", self._cuda.cuMemFree_v2(address))

    def allocate_pinned(self, size: int) -> int:
        """Host memory that the device reads and writes directly."""
        address = c_void_p()
        status = self._cuda.cuMemHostAlloc(byref(address), max(size, 1), _PORTABLE_HOST_MEMORY)
        self._check(f"cuMemHostAlloc of {size} bytes", status)
        found = address.value or 0
        self._pinned.add(found, max(size, 1))
        return found

    def free_pinned(self, address: int) -> None:
        """Give pinned host memory back."""
        self._pinned.remove(address)
        self._check("cuMemFreeHost", self._cuda.cuMemFreeHost(address))

    def is_pinned(self, address: int) -> bool:
        """Whether an address of the host is in memory that is pinned, by this driver's user or another one's."""
        if address in self._pinned:
            return True
        # The call for several attributes takes other memory for none; the one for a single attribute fails there.
        kind, wanted = c_int(), c_int(_MEMORY_TYPE)
        values = (c_void_p * 1)(addressof(kind))
        status = self._held.cuPointerGetAttributes(1, byref(wanted), values, c_uint64(address))
        return status == 0 and kind.value == _HOST_MEMORY

    def load_module(self, code: bytes) -> Handle:
        """The code of a cubin on the device, or of PTX with a zero behind it, which the driver compiles and keeps."""
        module = c_void_p()
        self._check("cuModuleLoadData", self._cuda.cuModuleLoadData(byref(module), code))
        return module.value or 0

    def unload_module(self, module: Handle) -> None:
        """Give the memory of code back."""
        self._check("cuModuleUnload", self._cuda.cuModuleUnload(module))

    def function(self, module: Handle, symbol: str, shared_bytes: int) -> Handle:
        """The kernel `symbol` of a module, allowed to use `shared_bytes` of dynamic shared memory."""
        function = c_void_p()
        status = self._cuda.cuModuleGetFunction(byref(function), module, symbol.encode())
        self._check(f"cuModuleGetFunction {symbol}", status)
        if shared_bytes > 48 * 1024:
            status = self._cuda.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, shared_bytes)
            self._check(f"{shared_bytes} bytes of shared memory for {symbol}", status)
        return function.value or 0

    def new_stream(self) -> Handle:
        """A stream that does not wait for the default stream."""
        stream = c_void_p()
        self._check("cuStreamCreate", self._cuda.cuStreamCreate(byref(stream), _NON_BLOCKING))
        return stream.value or 0

    def free_stream(self, stream: Handle) -> None:
        """Give a stream back; what is on it still runs."""
        self._check("cuStreamDestroy", self._cuda.cuStreamDestroy_v2(stream))

    def new_event(self) -> Handle:
        """An event that keeps time."""
        event = c_void_p()
        self._check("cuEventCreate", self._cuda.cuEventCreate(byref(event), 0))
        return event.value or 0

    def free_event(self, event: Handle) -> None:
        """Give an event back."""
        self._check("cuEventDestroy", self._cuda.cuEventDestroy_v2(event))

    def copy_to_device(self, device: int, host: int, size: int, stream: Handle) -> None:
        """Queue a copy from host memory (pinned, or else the call waits)."""
        self._check("cuMemcpyHtoDAsync", self._cuda.cuMemcpyHtoDAsync_v2(device, host, size, stream))

    def copy_pinned_to_device(self, device: int, host: int, size: int, stream: Handle) -> None:
        """Queue a copy from pinned memory of the host; the caller keeps the interpreter's lock."""
        self._check("cuMemcpyHtoDAsync", self._held.cuMemcpyHtoDAsync_v2(device, host, size, stream))

    def copy_to_host(self, host: int, device: int, size: int, stream: Handle) -> None:
        """Queue a copy to host memory."""
        self._check("cuMemcpyDtoHAsync", self._cuda.cuMemcpyDtoHAsync_v2(host, device, size, stream))

    def copy_on_device(self, to: int, source: int, size: int, stream: Handle) -> None:
        """Queue a copy from device memory to device memory."""
        self._check("cuMemcpyDtoDAsync", self._cuda.cuMemcpyDtoDAsync_v2(to, source, size, stream))

    def fill(self, device: int, size: int, byte: int, stream: Handle) -> None:
        """Queue the writing of one byte all over."""
        self._check("cuMemsetD8Async", self._cuda.cuMemsetD8Async(device, byte, size, stream))

    def encode_map(self, layout: MapLayout, address: int) -> EncodedMap:
        """The argument that describes a tensor at a device address to a kernel."""
        call, status, encoded = encode(self._cuda, layout, address)
        self._check(f"{call} of {layout}", status)
        return encoded

    def launch(
        self,
        function: Handle,
        grid: Size3,
        block: Size3,
        shared_bytes: int,
        stream: Handle,
        args: Any,
        dependent: bool = False,
        cooperative: bool = False,
    ) -> None:
        """Queue a kernel."""
        flags = [(_COOPERATIVE, cooperative), (_PROGRAMMATIC_SERIALIZATION, dependent)]
        wanted = [kind for kind, holds in flags if holds]
        if not wanted:
            status = self._cuda.cuLaunchKernel(function, *grid, *block, shared_bytes, stream, args, None)
            self._check("cuLaunchKernel", status)
            return
        attributes = (LaunchAttribute * len(wanted))(*[LaunchAttribute(kind, 0, (1,)) for kind in wanted])
        config = LaunchConfig(*grid, *block, shared_bytes, stream, attributes, len(wanted))
        self._check("cuLaunchKernelEx", self._cuda.cuLaunchKernelEx(byref(config), function, args, None))

    def begin_capture(self, stream: Handle) -> None:
        """Note what is put on the stream instead of running it."""
        self._check("cuStreamBeginCapture", self._cuda.cuStreamBeginCapture_v2(stream, _RELAXED_CAPTURE))

    def end_capture(self, stream: Handle) -> Handle:
        """The executable graph of what was noted."""
        graph, executable = c_void_p(), c_void_p()
        self._check("cuStreamEndCapture", self._cuda.cuStreamEndCapture(stream, byref(graph)))
        status = self._cuda.cuGraphInstantiateWithFlags(byref(executable), graph, 0)
        self._cuda.cuGraphDestroy(graph)
        self._check("cuGraphInstantiateWithFlags", status)
        return executable.value or 0

    def is_captured(self, stream: Handle) -> bool:
        """Whether a stream's work is noted for a graph at the moment instead of being done."""
        state = c_int()
        self._check("cuStreamIsCapturing", self._cuda.cuStreamIsCapturing(stream, byref(state)))
        return state.value != 0

    def replay(self, graph: Handle, stream: Handle) -> None:
        """Queue a graph."""
        self._check("cuGraphLaunch", self._cuda.cuGraphLaunch(graph, stream))

    def free_graph(self, graph: Handle) -> None:
        """Give an executable graph back."""
        self._check("cuGraphExecDestroy", self._cuda.cuGraphExecDestroy(graph))

    def record(self, event: Handle, stream: Handle) -> None:
        """Queue a time stamp."""
        self._check("cuEventRecord", self._cuda.cuEventRecord(event, stream))

    def wait(self, stream: Handle, event: Handle) -> None:
        """Let what comes on a stream wait for an event."""
        self._check("cuStreamWaitEvent", self._cuda.cuStreamWaitEvent(stream, event, 0))

    def elapsed_ms(self, start: Handle, end: Handle) -> float:
        """Milliseconds between two time stamps that the device has passed."""
        value = c_float()
        self._check("cuEventElapsedTime", self._cuda.cuEventElapsedTime(byref(value), start, end))
        return value.value

    def synchronize(self, stream: Handle) -> None:
        """Wait until the device has done all that is on the stream; errors of kernels surface here."""
        self._check("cuStreamSynchronize", self._cuda.cuStreamSynchronize(stream))

    def conditional_graphs(self) -> GraphMaker | None:
        """Graphs in which the device decides; None where the driver is too old for them."""
        return DriverGraphs(self._cuda, self._context, self._check) if DriverGraphs.offered(self._cuda) else None

    def library(self, name: str) -> Library:
        """The library of one of the names in `library_calls.LIBRARIES`, opened once for each device."""
        return {"cublas_lt": open_cublas_lt, "cudnn": open_cudnn}[name](self.ordinal)


def open_driver(ordinal: int | None = None) -> CudaDriver:
    """The CUDA device of a number, or else the one that is current in this thread.

    Raises `NoDeviceError` where there is no driver or no such device.
    """
    return driver_of(current_ordinal() if ordinal is None else ordinal)


@cache
def driver_of(ordinal: int) -> CudaDriver:
    """The driver for one device; raises as `open_driver`."""
    for name in ("libcuda.so.1", "libcuda.so", "nvcuda.dll"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        try:
            return CudaDriver(library, ordinal)
        except DeviceError as error:
            raise NoDeviceError(f"the plan was built for CUDA, but the driver does not start: {error}") from error
    raise NoDeviceError("the plan was built for CUDA, but no CUDA driver (libcuda) is here; build it for the CPU")
