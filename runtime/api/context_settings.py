"""Settings of an execution context, most of which are kept and change nothing (features 13.13, 13.18 to 13.25)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.errors import InvalidInputError
from mlirt.tensorrt.build_enums import ProfilingVerbosity
from mlirt.tensorrt.reporting import Reporting

if TYPE_CHECKING:
    from mlirt.runtime.api.cuda_engine import ICudaEngine
    from mlirt.tensorrt.gpu_allocator import IGpuAllocator

_TOLD = {ProfilingVerbosity.NONE: 0, ProfilingVerbosity.LAYER_NAMES_ONLY: 1, ProfilingVerbosity.DETAILED: 2}


class ContextSettings(Reporting):
    """What can be set beside shapes and addresses."""

    engine: ICudaEngine

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
        """What was set: it is kept and never asked, as memory comes from the driver (feature 13.25)."""
        return self._temporary_allocator

    @temporary_allocator.setter
    def temporary_allocator(self, allocator: IGpuAllocator | None) -> None:
        self._temporary_allocator = allocator
        if allocator is not None:
            self.reporter.warning("temporary_allocator is never asked: memory comes from the driver")

    @property
    def device_memory(self) -> int:
        """What was set: it is kept and changes nothing, as a context has memory of its own (feature 13.13)."""
        return self._device_memory

    @device_memory.setter
    def device_memory(self, address: int) -> None:
        self._device_memory = int(address)

    @property
    def persistent_cache_limit(self) -> int:
        """Bytes of the device's cache that activations may stay in: kept, and changes nothing (feature 13.18)."""
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
        """How much ranges tell: that of the build at most (feature 13.21). No ranges are made."""
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
