"""Memory of TensorRT's users for engines and contexts: allocators, and the memory that a context is given (18.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import cast

from mlirt.errors import InvalidInputError, OutOfMemoryError
from mlirt.runtime.lent_memory import AllocatedBlock, ContextMemory, LentBlock
from mlirt.runtime.manifest import Manifest
from mlirt.tensorrt.gpu_allocator import IGpuAllocator
from mlirt.tensorrt.reporting import Reporter

MEMORY_ALIGNMENT = 256
"""What addresses of memory for an engine are multiples of."""


class UserAllocator:
    """An `IGpuAllocator` as engines ask it; what it raises goes to the log."""

    def __init__(self, user: IGpuAllocator, reporter: Reporter) -> None:
        self.user = user
        self._reporter = reporter

    def take(self, size: int) -> int:
        """The address of so many bytes; OutOfMemoryError, in TensorRT's words, where the user gives none."""
        try:
            given = self.user.allocate(size, MEMORY_ALIGNMENT, 0)
        except Exception as error:  # the user's own code
            self._reporter.error("gpu_allocator.py::allocate", error)
            given = None
        address = 0 if given is None else int(given)
        if not address:
            raise OutOfMemoryError(f"Out of memory: the allocator gave nothing for {size} bytes.")
        if address % MEMORY_ALIGNMENT:
            self.give_back(address)
            raise OutOfMemoryError(f"the allocator gave {address:#x}, which is no multiple of {MEMORY_ALIGNMENT}")
        return address

    def give_back(self, address: int) -> None:
        """Let the user have the memory again."""
        try:
            self.user.deallocate(address)
        except Exception as error:  # the user's own code, also while the process ends
            self._reporter.error("gpu_allocator.py::deallocate", error)


def allocated_memory(user: IGpuAllocator, manifest: Manifest, reporter: Reporter) -> ContextMemory:
    """A context's memory from an allocator; where there is none, the error names a tensor (tensorrt-features.md#18.6).
    """
    allocator, name = UserAllocator(user, reporter), largest_tensor(manifest)

    def lend(size: int) -> LentBlock:
        try:
            return AllocatedBlock(allocator, size)
        except OutOfMemoryError as error:
            raise OutOfMemoryError(
                f"GPU memory allocation failed during initialization of tensor: {name}. {error}"
            ) from error

    return ContextMemory(lend, lend)


def given_memory(address: int, size: int) -> ContextMemory:
    """A context's memory of `size` bytes at an address that its user gives (tensorrt-features.md#13.13)."""

    def lend(wanted: int) -> LentBlock:
        if not address:
            raise InvalidInputError(
                f"device_memory is not set: the context was created without, and needs {wanted} bytes"
            )
        if wanted > size:
            raise InvalidInputError(
                f"these shapes need {wanted} bytes of device_memory, more than the {size} there are"
            )
        return LentBlock(address, size)

    return ContextMemory(lend)


def largest_tensor(manifest: Manifest) -> str:
    """The name of the largest tensor between inputs and outputs, as far as lengths are known; or of an output."""
    own = {tensor.name for tensor in (*manifest.inputs, *manifest.outputs)}
    found = {
        str(tensor.get("name", "")): _bytes_at_least(tensor)
        for layer in manifest.layers
        for tensor in cast("Sequence[Mapping[str, object]]", layer.get("outputs", ()))
    }
    inner = {name: size for name, size in found.items() if name not in own} or found
    return max(inner, key=lambda name: inner[name], default=manifest.outputs[0].name if manifest.outputs else "")


def _bytes_at_least(tensor: Mapping[str, object]) -> int:
    lengths = cast("Sequence[object]", tensor.get("shape", ()))
    return prod(length for length in lengths if isinstance(length, int))
