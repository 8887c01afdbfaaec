"""A plan on the GPU whose runs are queued on a stream that others use too, so that one clock times all."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mlirt.runtime.cuda import CudaDevice
from mlirt.runtime.plan_file import read_plan
from mlirt.runtime.shape_binding import bind_shapes

Array = np.ndarray[Any, np.dtype[Any]]


class ResidentPlan:
    """A plan with its inputs on the device; calling it queues the kernels once."""

    def __init__(self, path: str | os.PathLike[str], feeds: Mapping[str, Array], stream: int) -> None:
        plan = read_plan(path)
        self.manifest = plan.manifest
        self._device = CudaDevice(plan)
        self._session = self._device.session(stream=stream)
        arrays = [np.ascontiguousarray(feeds[tensor.name]) for tensor in self.manifest.inputs]
        shapes = tuple(tuple(array.shape) for array in arrays)
        self._program = self._session.prepare(bind_shapes(self.manifest, shapes))
        self._program.timed = False
        self._program.upload(arrays)

    def __call__(self) -> None:
        self._program.execute()

    def outputs(self) -> dict[str, Array]:
        """What the last run gave."""
        names = [tensor.name for tensor in self.manifest.outputs]
        return dict(zip(names, self._program.download(), strict=True))

    def launch_times(self) -> list[float]:
        """Microseconds of each launch, run alone between two events."""
        return [1e3 * ms for ms in self._program.profile()]

    def memory(self) -> tuple[int, int]:
        """The address and the bytes of the block that holds the arena, the inputs and the outputs."""
        return self._program.memory()

    def launches(self) -> list[tuple[int, Callable[[int], None]]]:
        """The number of each launch, and what queues it alone on a stream."""
        return self._program.single_launches()

    def kernel_of(self, launch: int) -> str:
        """The name of the kernel of a launch."""
        return self.manifest.kernels[self.manifest.launches[launch].kernel].name

    def layer_of(self, launch: int) -> str:
        """The name of the layer that a launch belongs to."""
        layers = self.manifest.layers
        return str(layers[launch].get("name", "")) if launch < len(layers) else f"launch {launch}"
