"""Runtime: opens plans (tensorrt-features.md#13.1, 17.12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast

from mlirt.errors import MlirtError, UnsupportedError
from mlirt.runtime.api.cuda_engine import ICudaEngine
from mlirt.runtime.api.lenders import UserAllocator
from mlirt.runtime.api.machine import WARNING, differences, machine_of
from mlirt.runtime.driver_interface import NoDeviceError
from mlirt.runtime.engine import Engine
from mlirt.runtime.garbage_collection import rare_collections
from mlirt.runtime.plan_file import read_plan
from mlirt.tensorrt.context_manager import ContextManager
from mlirt.tensorrt.entry_point import EntryPoint
from mlirt.tensorrt.later_settings import LaterSetting
from mlirt.tensorrt.logger import ILogger
from mlirt.tensorrt.reported_version import reports_at_least
from mlirt.tensorrt.run_enums import TempfileControlFlag

# TensorRT's words for it (tensorrt-features.md#31.1); 35 is CUDA's number for a driver that is missing or too old.
_NO_DRIVER = (
    "CUDA initialization failure with error 35. Please check CUDA installation: "
    "http://docs.nvidia.com/cuda/cuda-installation-guide-linux/index.html"
)

_ALL_FILES = 1 << TempfileControlFlag.ALLOW_IN_MEMORY_FILES | 1 << TempfileControlFlag.ALLOW_TEMPORARY_FILES

Buffer: TypeAlias = "bytes | bytearray | memoryview"


class Runtime(EntryPoint, ContextManager):
    """The way from a plan to an engine."""

    temporary_directory = LaterSetting((8, 6), None, str)
    """Where temporary files may lie, of which none is made."""
    tempfile_control_flags = LaterSetting((8, 6), _ALL_FILES, int)
    """One bit for each `TempfileControlFlag`."""
    engine_host_code_allowed = LaterSetting((8, 6), False, bool)
    """Whether plans may have code for the host, which is checked as they are opened."""

    def __init__(self, logger: ILogger) -> None:
        self._later: dict[str, object] = {}
        super().__init__(logger)

    if reports_at_least(8, 6):

        def load_runtime(self, path: str) -> None:
            """Not supported: plans of other versions are to be built again."""
            raise UnsupportedError(f"load_runtime({path!r}): there is no lean runtime; build the plan again")

    @property
    def num_DLA_cores(self) -> int:
        return 0

    @property
    def DLA_core(self) -> int:
        return -1

    @DLA_core.setter
    def DLA_core(self, core: int) -> None:
        self.reporter.error("runtime.py::setDLACore", UnsupportedError(f"DLA_core {core}: there is no DLA"))

    def deserialize_cuda_engine(self, serialized_engine: Buffer) -> ICudaEngine | None:
        """The engine of a plan; None, with the reason in the log, where it is damaged or for another machine."""
        try:
            content = memoryview(serialized_engine)
        except TypeError as error:
            raise TypeError(f"deserialize_cuda_engine(): incompatible function arguments: {error}") from None
        try:
            user = self.gpu_allocator
            allocator = None if user is None else UserAllocator(user, self.reporter)
            with rare_collections():
                engine = Engine(read_plan(content), waits=True, allocator=allocator)
                engine.open_device()
            self._compare_machines(engine)
            return ICudaEngine(engine, self.reporter.of_its_own(), user)
        except NoDeviceError as error:
            self.reporter.error("runtime.py::deserializeCudaEngine", NoDeviceError(f"{_NO_DRIVER} ({error})"))
        except MlirtError as error:
            self.reporter.error("runtime.py::deserializeCudaEngine", error)
        return None

    def _compare_machines(self, engine: Engine) -> None:
        """Warn of a plan that was made on another model of device (tensorrt-features.md#21.4)."""
        made_on = engine.plan.manifest.info.get("machine")
        if isinstance(made_on, Mapping):
            found = differences(cast("Mapping[str, object]", made_on), machine_of(engine.target))
            if found:
                self.reporter.warning(f"{WARNING} Of this device {'; '.join(found)}.")
