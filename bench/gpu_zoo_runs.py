"""Runs a plan of the zoo again and again under pressure, and says which launches give other bytes."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from device_pressure import NoPressure, Pressure
from gpu_engine import ResidentPlan

Array = np.ndarray[Any, np.dtype[Any]]


class Runnable(Protocol):
    """A plan with its inputs in place: calling it queues a run, `outputs` waits for it."""

    def __call__(self) -> None: ...

    def outputs(self) -> dict[str, Array]: ...


@dataclass(frozen=True)
class Repeated:
    """The outputs of the first run, and how many runs gave other bits."""

    outputs: list[Array]
    differing: int


def repeat(plan: Runnable, pressure: Pressure, runs: int) -> Repeated:
    """Run so many times, the caches swept before each run, other work beside every second one."""
    first: dict[str, Array] = {}
    differing = 0
    for number in range(runs):
        pressure.sweep(number)
        pressure.occupy(number)
        plan()
        found = plan.outputs()
        if not number:
            first = found
        differing += any(array.tobytes() != found[name].tobytes() for name, array in first.items())
    return Repeated(list(first.values()), differing)


class HostPlan:
    """A plan for the processor."""

    def __init__(self, path: Path, feeds: Mapping[str, Array]) -> None:
        import mlirt

        self._engine, self._feeds = mlirt.load(path), feeds
        self._found: dict[str, Array] = {}

    def __call__(self) -> None:
        self._found = dict(self._engine.run(dict(self._feeds)))

    def outputs(self) -> dict[str, Array]:
        return {name: np.array(array) for name, array in self._found.items()}

    def differing_launches(self, times: int) -> list[str]:
        """Launches are not repeated one by one here."""
        return []


class DevicePlan(ResidentPlan):
    """A plan on the device whose launches can be repeated one by one."""

    def __init__(self, path: Path, feeds: Mapping[str, Array], stream: Any, pressure: Pressure) -> None:
        super().__init__(path, feeds, stream.cuda_stream)
        self._stream, self._pressure = stream, pressure

    def differing_launches(self, times: int) -> list[str]:
        """Each launch alone, repeated from the same memory; those whose repetitions leave other bytes.

        Launches of branches and loops run once each, in the plan's order.
        """
        import torch

        block = torch.as_tensor(_Bytes(*self.memory()), device="cuda")
        before, found = torch.empty_like(block), list[str]()
        for number, queue in self.launches():
            before.copy_(block)
            first, differing = None, 0
            for repetition in range(times):
                block.copy_(before)
                self._pressure.sweep(repetition)
                self._pressure.occupy(repetition)
                queue(self._stream.cuda_stream)
                self._stream.synchronize()
                torch.cuda.synchronize()
                if first is None:
                    first = block.clone()
                differing += not torch.equal(first, block)
            if differing:
                found.append(f"{self.layer_of(number)} ({self.kernel_of(number)}): {differing} of {times}")
            if first is not None:
                block.copy_(first)
        return found


class _Bytes:
    """Memory of the device as PyTorch takes it."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


Open = Callable[[Path, Mapping[str, Array]], Any]


@contextmanager
def opener(target: str) -> Generator[tuple[Open, Pressure]]:
    """What opens plans of a target, and the pressure that its runs are under."""
    if target == "cpu":
        yield HostPlan, NoPressure()
        return
    import torch
    from device_pressure import TorchPressure

    stream, pressure = torch.cuda.Stream(), TorchPressure()
    yield lambda path, feeds: DevicePlan(path, feeds, stream, pressure), pressure
    torch.cuda.synchronize()
