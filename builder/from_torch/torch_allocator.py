"""The memory of engines on a GPU from PyTorch's allocator, so that one pool serves both."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

from mlirt.errors import MissingPackageError, OutOfMemoryError


class TorchAllocator:
    """`mlirt.load("net.plan", allocator=mlirt.TorchAllocator())`: `torch.cuda.memory_allocated` counts the engine, too.

    The memory is that of the device that is current in PyTorch when this is made. Without PyTorch that is a
    `MissingPackageError`.
    """

    def __init__(self) -> None:
        self._torch = _torch()
        self._device = self._torch.cuda.current_device()

    def take(self, size: int) -> int:
        """The address of so many bytes; `OutOfMemoryError` where PyTorch has none."""
        try:
            return int(self._torch.cuda.caching_allocator_alloc(max(size, 1), self._device))
        except self._torch.cuda.OutOfMemoryError as error:
            raise OutOfMemoryError(
                f"PyTorch's allocator has no {size} bytes: {' '.join(str(error).split())}"
            ) from error

    def give_back(self, address: int) -> None:
        """Let PyTorch have the memory again once nothing that is queued on the GPU uses it."""
        self._torch.cuda.synchronize(self._device)
        self._torch.cuda.caching_allocator_delete(address)


def _torch() -> Any:
    """PyTorch, which is asked for here alone: the class itself has a page where PyTorch is not installed."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            "mlirt.TorchAllocator needs PyTorch, which is not installed here: `pip install 'mlirt[torch]'` brings it",
            name=error.name,
        ) from error
    return torch
