"""The memory of engines on a GPU from PyTorch's allocator, so that one pool serves both."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import torch

from mlirt.errors import OutOfMemoryError


class TorchAllocator:
    """`mlirt.load("net.plan", allocator=mlirt.TorchAllocator())`: `torch.cuda.memory_allocated` counts the engine, too.

    The memory is that of the device that is current in PyTorch when this is made.
    """

    def __init__(self) -> None:
        self._device = torch.cuda.current_device()

    def take(self, size: int) -> int:
        """The address of so many bytes; `OutOfMemoryError` where PyTorch has none."""
        try:
            return int(torch.cuda.caching_allocator_alloc(max(size, 1), self._device))
        except torch.cuda.OutOfMemoryError as error:
            raise OutOfMemoryError(
                f"PyTorch's allocator has no {size} bytes: {' '.join(str(error).split())}"
            ) from error

    def give_back(self, address: int) -> None:
        """Let PyTorch have the memory again once nothing that is queued on the GPU uses it."""
        torch.cuda.synchronize(self._device)
        torch.cuda.caching_allocator_delete(address)
