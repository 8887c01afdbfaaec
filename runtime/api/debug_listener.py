"""Debug tensors by TensorRT's names: a listener is told what the engine beside computes, behind each run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

import numpy as np

from mlirt.errors import InvalidInputError, PluginError
from mlirt.runtime.engine import Engine
from mlirt.tensorrt.data_types import DataType, data_type
from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.run_enums import TensorLocation


class IDebugListener(ABC):
    """The interface: `process_debug_tensor` is called for each debug tensor whose state is on, behind each run."""

    def __init__(self) -> None:
        """Subclasses call this, as TensorRT's binding wants it."""

    @abstractmethod
    def process_debug_tensor(
        self, addr: int, location: TensorLocation, type: DataType, shape: Dims, name: str, stream: int
    ) -> bool:
        """Look at a tensor, which lies in the host's memory until this returns; False fails the run."""


class DebugStates:
    """The debug tensors of a context: which are on, and who is told of them."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.on = dict.fromkeys(names, False)
        self.listener: IDebugListener | None = None

    def set(self, name: str, flag: bool) -> bool:
        """Turn one on or off; False for a name that is none."""
        if name in self.on:
            self.on[name] = bool(flag)
        return name in self.on

    @property
    def is_active(self) -> bool:
        """Whether somebody is told of anything."""
        return self.listener is not None and any(self.on.values())

    def tell(self, engine: Engine, feeds: Callable[[], Mapping[str, np.ndarray]], stream: int) -> None:
        """Compute the tensors and show them; raises `InvalidInputError` where the listener refuses one."""
        if self.listener is None or not self.is_active:
            return
        for name, array in engine.debug(feeds()).items():
            if not self.on.get(name):
                continue
            dense = np.ascontiguousarray(array)
            kind, shape = data_type(dense.dtype.name), Dims(array.shape)
            try:
                is_fine = self.listener.process_debug_tensor(
                    dense.ctypes.data, TensorLocation.HOST, kind, shape, name, stream
                )
            except Exception as error:
                said = " ".join(str(error).split())
                raise PluginError(f"{name}: the debug listener failed: {type(error).__name__}: {said}") from error
            if not is_fine:
                raise InvalidInputError(f"{name}: the debug listener returned False, which ends the run")
