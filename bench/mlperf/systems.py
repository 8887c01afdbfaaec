"""What a system under test is, whoever made it: it runs batches of a network from several threads at once."""

from __future__ import annotations

import queue
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Outputs = Mapping[str, Array]


@dataclass(frozen=True)
class Request:
    """What a system is opened for.

    model: the ONNX file; its first dimensions are `least` = `most` where these are equal, else a name.
    device: "cpu" or "cuda". precision: "fp32" or "fp16"; a file with QuantizeLinear computes in int8 where it says so.
    threads: those that compute on a CPU, in all. runs_at_once: how many batches may run at the same time.
    folder: where plans are kept. heuristic: whether kernels are chosen by estimates instead of their measured times.
    """

    model: Path
    least: int
    most: int
    device: str
    precision: str
    threads: int
    runs_at_once: int
    folder: Path
    heuristic: bool = False
    lengths: tuple[int, int, int] | None = None
    """What the second dimensions may be that have a name: the least, the usual, the most."""

    @property
    def is_fixed(self) -> bool:
        """Whether each batch has the same number of rows."""
        return self.least == self.most


class System(Protocol):
    """An opened network."""

    @property
    def runs_at_once(self) -> int:
        """From how many threads `run` may be called at the same time."""
        ...

    @property
    def joins_arrays(self) -> bool:
        """Whether `run` takes `JoinedArrays`."""
        ...

    def host_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Memory for a sample that the device reads quickest."""
        ...

    def run(self, feeds: Mapping[str, Array]) -> Outputs:
        """The outputs by name for inputs by name."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class PooledSystem(ABC):
    """A peer on the CPU: a session of its own for each batch at once, which waits for one."""

    joins_arrays = False

    def __init__(self, request: Request) -> None:
        """Raises `ValueError` for what is not the peer's: a GPU, and half precision."""
        if request.device != "cpu" or request.precision != "fp32":
            raise ValueError("this is a peer on the CPU, in float32 or with a file of integers")
        self.runs_at_once = request.runs_at_once
        self._free: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def add(self, session: Any) -> None:
        """One more session that waits."""
        self._free.put(session)

    def host_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        return np.empty(shape, dtype)

    def run(self, feeds: Mapping[str, Array]) -> Outputs:
        session = self._free.get()
        try:
            return self.run_in(session, dict(feeds))
        finally:
            self._free.put(session)

    @abstractmethod
    def run_in(self, session: Any, feeds: dict[str, Array]) -> Outputs:
        """Run a batch in a session that nobody else uses."""

    def close(self) -> None:
        while not self._free.empty():
            self._free.get()


SYSTEMS = ("mlirt", "onnxruntime", "openvino", "torch")


def opened(name: str, request: Request) -> System:
    """Open a network in a system; its package is imported only now. Raises what the system raises."""
    if name not in SYSTEMS:
        raise ValueError(f"there is no system {name!r}; expected one of {', '.join(SYSTEMS)}")
    make: Callable[[Request], System] = import_module(f"mlperf.{name}_system").opened
    return make(request)
