"""What the builder and the runtime have in common: a logger, an error recorder, an allocator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.tensorrt.argument_types import expect
from mlirt.tensorrt.gpu_allocator import IGpuAllocator
from mlirt.tensorrt.logger import ILogger
from mlirt.tensorrt.reported_version import reports_at_least
from mlirt.tensorrt.reporting import Reporter, Reporting

if TYPE_CHECKING:
    from mlirt.tensorrt.plugins.registry import IPluginRegistry


class EntryPoint(Reporting):
    """An object that is made from a logger alone."""

    def __init__(self, logger: ILogger) -> None:
        expect(f"{type(self).__name__}(): logger", logger, ILogger)
        self.reporter = Reporter(logger)
        self.max_threads = 1
        self._gpu_allocator: IGpuAllocator | None = None
        self.fix_attributes()

    @property
    def logger(self) -> ILogger:
        return self.reporter.logger

    if reports_at_least(8, 6):

        def get_plugin_registry(self) -> IPluginRegistry:
            """The registry of all plugins, which engines and builders share."""
            from mlirt.tensorrt.plugins.registry import get_plugin_registry

            return get_plugin_registry()

    @property
    def gpu_allocator(self) -> IGpuAllocator | None:
        """Who gives the memory of engines, or None for the driver (tensorrt-features.md#18.1)."""
        return self._gpu_allocator

    @gpu_allocator.setter
    def gpu_allocator(self, allocator: IGpuAllocator | None) -> None:
        if allocator is not None:
            expect("gpu_allocator", allocator, IGpuAllocator)
        self._gpu_allocator = allocator
