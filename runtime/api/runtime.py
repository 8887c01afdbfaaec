"""Runtime: opens plans (features 13.1, 17.12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypeAlias

from mlirt.errors import MlirtError, UnsupportedError
from mlirt.runtime.api.cuda_engine import ICudaEngine
from mlirt.runtime.engine import load
from mlirt.tensorrt.deprecation import deprecated
from mlirt.tensorrt.reporting import Reporter

if TYPE_CHECKING:
    from mlirt.tensorrt.error_recorder import IErrorRecorder
    from mlirt.tensorrt.logger import ILogger


Buffer: TypeAlias = "bytes | bytearray | memoryview"


class Runtime:
    """The way from a plan to an engine."""

    def __init__(self, logger: ILogger) -> None:
        self._reporter = Reporter(logger)
        self.max_threads = 1

    @property
    def logger(self) -> ILogger:
        return self._reporter.logger

    @property
    def error_recorder(self) -> IErrorRecorder | None:
        return self._reporter.recorder

    @error_recorder.setter
    def error_recorder(self, recorder: IErrorRecorder | None) -> None:
        self._reporter.recorder = recorder

    @property
    def gpu_allocator(self) -> None:
        """None: memory comes from the driver."""

    @gpu_allocator.setter
    def gpu_allocator(self, allocator: object) -> None:
        if allocator is not None:
            raise UnsupportedError("gpu_allocator: memory comes from the driver; there are no allocators")

    @property
    def num_DLA_cores(self) -> int:
        return 0

    @property
    def DLA_core(self) -> int:
        return -1

    @DLA_core.setter
    def DLA_core(self, core: int) -> None:
        raise UnsupportedError("DLA_core: there is no DLA")

    def deserialize_cuda_engine(self, serialized_engine: Buffer) -> ICudaEngine | None:
        """The engine of a plan; None, with the reason in the log, where it is damaged or for another machine."""
        try:
            content = memoryview(serialized_engine)
        except TypeError as error:
            raise TypeError(f"deserialize_cuda_engine(): incompatible function arguments: {error}") from None
        try:
            return ICudaEngine(load(content), self._reporter)
        except MlirtError as error:
            self._reporter.error("runtime.py::deserializeCudaEngine", error)
            return None

    def __enter__(self) -> Self:
        deprecated("del")
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is to be given back."""
