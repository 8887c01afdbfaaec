"""Settings of an execution context: its memory, its ranges, what changes nothing (13.13, 13.18 to 13.25)."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from mlirt.errors import InvalidInputError
from mlirt.runtime.api.lenders import MEMORY_ALIGNMENT, allocated_memory, given_memory
from mlirt.tensorrt.argument_types import expect
from mlirt.tensorrt.build_enums import ProfilingVerbosity
from mlirt.tensorrt.gpu_allocator import IGpuAllocator
from mlirt.tensorrt.reporting import Reporting

if TYPE_CHECKING:
    from mlirt.runtime.api.cuda_engine import ICudaEngine
    from mlirt.runtime.lent_memory import ContextMemory

_TOLD = {ProfilingVerbosity.NONE: 0, ProfilingVerbosity.LAYER_NAMES_ONLY: 1, ProfilingVerbosity.DETAILED: 2}


class ContextSettings(Reporting):
    """What can be set beside shapes and addresses."""

    engine: ICudaEngine
    has_memory: bool
    """Whether the context has memory without being given some (mlirt's own)."""

    def _begin_settings(self) -> None:
        """All settings as a new context has them; the engine is there."""
        self.name = ""
        self.enqueue_emits_profile = True
        self.debug_sync = False
        self._persistent_cache_limit = 0
        self._nvtx_verbosity = self.engine.profiling_verbosity
        self._device_memory = 0
        self._temporary_allocator: IGpuAllocator | None = None

    @property
    def temporary_allocator(self) -> IGpuAllocator | None:
        """Who gives the memory for what lies between inputs and outputs; the engine's unless it is set (13.25)."""
        return self._temporary_allocator

    @temporary_allocator.setter
    def temporary_allocator(self, allocator: IGpuAllocator | None) -> None:
        if allocator is not None:
            expect("temporary_allocator", allocator, IGpuAllocator)
        self._temporary_allocator = allocator
        self.take_other_memory()

    @property
    def device_memory(self) -> int:
        """The address of `device_memory_size` bytes, in which the context runs from then on
        (tensorrt-features.md#13.13).

        Contexts may share them as long as one runs at a time.
        """
        return self._device_memory

    @device_memory.setter
    def device_memory(self, address: int) -> None:
        address = int(address)
        if address % MEMORY_ALIGNMENT:
            error = InvalidInputError(f"device_memory is {address:#x}, which is no multiple of {MEMORY_ALIGNMENT}")
            self.reporter.error("execution_context.py::setDeviceMemory", error)
            return
        if self.has_memory:
            self.reporter.warning(
                "device_memory is set for a context that was created with memory, which it gives back"
            )
        self._device_memory, self.has_memory = address, False
        self.take_other_memory()

    @abstractmethod
    def take_other_memory(self) -> None:
        """Be in the memory that the settings say from the next run on (mlirt's own)."""

    def _memory(self) -> ContextMemory | None:
        """Where the context's memory comes from; None for the driver's."""
        if not self.has_memory:
            return given_memory(self._device_memory, self.engine.device_memory_size)
        user = self._temporary_allocator or self.engine.allocator
        return None if user is None else allocated_memory(user, self.engine.manifest, self.reporter)

    @property
    def persistent_cache_limit(self) -> int:
        """Bytes of the device's cache that activations may stay in: kept, and changes nothing
        (tensorrt-features.md#13.18).
        """
        return self._persistent_cache_limit

    @persistent_cache_limit.setter
    def persistent_cache_limit(self, size: int) -> None:
        largest = self.engine.persistent_cache_bytes()
        if not 0 <= size <= largest:
            error = InvalidInputError(f"persistent_cache_limit is {size}; the device has {largest} bytes of such cache")
            self.reporter.error("execution_context.py::setPersistentCacheLimit", error)
            return
        self._persistent_cache_limit = int(size)
        self.reporter.info("persistent_cache_limit is kept and changes nothing: no kernel pins lines of the cache")

    @property
    def nvtx_verbosity(self) -> ProfilingVerbosity:
        """How much ranges tell: that of the build at most (tensorrt-features.md#13.21).

        Where a profiler listens, and this is not NONE, layers run one by one, each in a range of its name (17.10).
        """
        return self._nvtx_verbosity

    @nvtx_verbosity.setter
    def nvtx_verbosity(self, verbosity: ProfilingVerbosity) -> None:
        built = self.engine.profiling_verbosity
        if _TOLD[verbosity] > _TOLD[built]:
            self.reporter.warning(
                f"nvtx_verbosity {verbosity.name} is more than the {built.name} of the engine's build"
            )
            return
        self._nvtx_verbosity = verbosity
