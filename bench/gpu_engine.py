"""A plan on the GPU whose runs are queued on a stream that others use too, so that one clock times all."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from mlirt.runtime.cuda import CudaDevice
from mlirt.runtime.cuda_memory import DeviceState
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.lent_memory import LentBlock
from mlirt.runtime.manifest import Tensor
from mlirt.runtime.plan_file import read_plan
from mlirt.runtime.shape_binding import bind_shapes

Array = np.ndarray[Any, np.dtype[Any]]


class OnDevice:
    """A tensor of the device as other libraries take it."""

    def __init__(self, address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.__cuda_array_interface__ = {
            "typestr": dtype.str,
            "shape": shape,
            "strides": None,
            "data": (address, False),
            "version": 3,
        }


class ResidentPlan:
    """A plan with its inputs on the device; calling it queues the kernels once."""

    def __init__(self, path: str | os.PathLike[str], feeds: Mapping[str, Any], stream: int) -> None:
        """`feeds` are arrays, or tensors of the device (`__cuda_array_interface__`) that are ready on the stream."""
        plan = read_plan(path)
        self.manifest = plan.manifest
        self._device = CudaDevice(plan)
        self._session = self._device.session(stream=stream)
        arrays = [self._given(feeds[tensor.name], tensor) for tensor in self.manifest.inputs]
        shapes = tuple(tuple(array.shape) for array in arrays)
        self._program = self._session.prepare(bind_shapes(self.manifest, shapes))
        self._program.timed = False
        self._program.upload(arrays)

    def _given(self, feed: Any, tensor: Tensor) -> Any:
        interface = getattr(feed, "__cuda_array_interface__", None)
        if interface is None:
            return np.ascontiguousarray(feed)
        dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
        assert dtype == numpy_dtype(tensor.dtype), (tensor.name, dtype, tensor.dtype)
        assert interface.get("strides") is None, tensor.name
        block = LentBlock(interface["data"][0], dtype.itemsize * prod(shape))
        return DeviceState(self._device.driver, shape, dtype, block)

    def __call__(self) -> None:
        self._program.execute()

    def outputs(self) -> dict[str, Array]:
        """What the last run gave."""
        names = [tensor.name for tensor in self.manifest.outputs]
        return dict(zip(names, self._program.download(), strict=True))

    def outputs_in_place(self) -> dict[str, OnDevice]:
        """What the last run gave, where it lies, until the next run."""
        tensors = zip(self.manifest.outputs, self._program.outputs_in_place(), strict=True)
        return {
            tensor.name: OnDevice(place.address, place.shape, numpy_dtype(tensor.dtype)) for tensor, place in tensors
        }

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
