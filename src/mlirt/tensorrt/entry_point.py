"""What the builder and the runtime have in common: a logger, an error recorder, and no allocators."""

from __future__ import annotations

from mlirt.errors import UnsupportedError
from mlirt.tensorrt.argument_types import expect
from mlirt.tensorrt.logger import ILogger
from mlirt.tensorrt.reporting import Reporter, Reporting


class EntryPoint(Reporting):
    """An object that is made from a logger alone."""

    def __init__(self, logger: ILogger) -> None:
        expect(f"{type(self).__name__}(): logger", logger, ILogger)
        self.reporter = Reporter(logger)
        self.max_threads = 1
        self.fix_attributes()

    @property
    def logger(self) -> ILogger:
        return self.reporter.logger

    @property
    def gpu_allocator(self) -> None:
        """None: memory comes from the driver."""

    @gpu_allocator.setter
    def gpu_allocator(self, allocator: object) -> None:
        if allocator is not None:
            raise UnsupportedError("gpu_allocator: memory comes from the driver; there are no allocators")
