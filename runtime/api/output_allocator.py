"""Output allocators: memory for outputs whose size the run decides (tensorrt-features.md#12.15)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from mlirt.tensorrt.dims import Dims


class IOutputAllocator(ABC):
    """The interface: asked for memory, then told the shape."""

    def __init__(self) -> None:
        """Subclasses call this, as TensorRT's binding wants it."""

    @abstractmethod
    def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
        """The address of at least `size` bytes; `memory` is what was set or given before. 0 where there is none."""

    @abstractmethod
    def notify_shape(self, tensor_name: str, shape: Dims) -> None:
        """Told the shape of the output."""
