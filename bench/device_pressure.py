"""Puts a device under pressure between and during runs: other contents in its caches, other work on its processors."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Protocol


class Pressure(Protocol):
    """What disturbs the runs of a plan."""

    def sweep(self, number: int) -> None:
        """Fill the second-level cache with other memory; returns when that is done."""
        ...

    def occupy(self, number: int) -> None:
        """Queue work that goes on while the next run does; another amount for each number, none for even ones."""
        ...


class NoPressure:
    """For a processor, which shares its caches anyway."""

    def sweep(self, number: int) -> None: ...

    def occupy(self, number: int) -> None: ...


class TorchPressure:
    """Memory of PyTorch that is larger than any cache, and products on two streams of their own."""

    _SWEPT = 256 << 20
    _MAX_QUEUED_LAUNCHES = 24

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self._memory = torch.empty(self._SWEPT, dtype=torch.uint8, device="cuda")
        self._streams = [torch.cuda.Stream() for _ in range(2)]
        # One fills all processors for a while, one a few of them, so that launches find other processors free.
        self._large, self._small = (torch.randn(n, n, dtype=torch.float16, device="cuda") for n in (3072, 512))
        self._results = [torch.empty_like(self._large), torch.empty_like(self._small)]
        torch.cuda.synchronize()

    def sweep(self, number: int) -> None:
        self._torch.cuda.synchronize()
        self._memory.fill_(number & 255)
        self._torch.cuda.synchronize()

    def occupy(self, number: int) -> None:
        if number % 2 == 0:
            return
        for stream, factor, result in zip(self._streams, (self._large, self._small), self._results, strict=True):
            with self._torch.cuda.stream(stream):
                for _ in range(1 + number * 7 % self._MAX_QUEUED_LAUNCHES):
                    self._torch.mm(factor, factor, out=result)
