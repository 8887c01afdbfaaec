"""Profilers: they are told the time of each layer (tensorrt-features.md#17.6 to 17.9)."""

from __future__ import annotations

from abc import ABC, abstractmethod


class IProfiler(ABC):
    """The interface: `report_layer_time` is called for each layer of a run, in order."""

    def __init__(self) -> None:
        """Subclasses call this, as TensorRT's binding wants it."""

    @abstractmethod
    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """Take the time of a layer."""


class Profiler(IProfiler):
    """Prints the times."""

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        print(f"{layer_name}: {ms}ms")
