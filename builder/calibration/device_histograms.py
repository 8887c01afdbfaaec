"""Looks at tensors in the memory of a GPU; what comes to the host are 2,049 numbers for each, and 3 for a channel."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mlirt.builder.calibration.histogram import BINS, Array, Histogram, factor_of
from mlirt.builder.host import cuda_target
from mlirt.builder.numba_cuda import compile_kernels
from mlirt.codegen.numba_cuda.kernel_text import KernelSource
from mlirt.runtime.cuda_driver import open_driver
from mlirt.runtime.cuda_memory import DeviceBlock

if TYPE_CHECKING:
    from mlirt.runtime.device import DeviceTensor
    from mlirt.runtime.driver_interface import Driver

_TEXT = Path(__file__).with_name("device_kernels.py")
_ARGUMENTS = {
    "largest": ("float32*", "int64", "float32*"),
    "count": ("float32*", "int64", "float32", "int32*"),
    "sum_rows": ("int32*", "int64", "int64*"),
    "reduce_channels": ("float32*", "int64", "int64", "int64", "float64*"),
}
_CTYPES: Mapping[str, Any] = {"int64": ctypes.c_int64, "float32": ctypes.c_float}
_THREADS, _BLOCKS, _ROW = 256, 264, BINS + 1


class DeviceHistograms:
    """The kernels on a device, with their memory. All work is put on one stream."""

    def __init__(self, driver: Driver, code: Mapping[str, bytes]) -> None:
        self._driver = driver
        self._stream = driver.new_stream()
        self._functions = {name: driver.function(driver.load_module(cubin), name, 0) for name, cubin in code.items()}
        self._rows = DeviceBlock(driver, 4 * _BLOCKS * _ROW)
        self._results: DeviceBlock | None = None

    @classmethod
    def on_this_machine(cls) -> Self:
        return cls(open_driver(), compiled())

    def add(self, tensors: Mapping[str, DeviceTensor], histograms: Mapping[str, Histogram]) -> None:
        """Count a batch of float32 tensors; raises `InvalidInputError` for NaN, naming the tensor."""
        self._driver.activate()
        for name, top in zip(tensors, self._tops(list(tensors.values())), strict=True):
            histograms[name].reach(float(top))
        bounded = [name for name in tensors if not histograms[name].unbounded]
        limits = [histograms[name].limit for name in bounded]
        for name, row in zip(bounded, self._counts([tensors[name] for name in bounded], limits), strict=True):
            histograms[name].counts += row[:BINS]
            histograms[name].zeros += int(row[BINS])

    def channels(self, tensors: Mapping[str, DeviceTensor], axes: Mapping[str, int]) -> dict[str, Array]:
        """The least number, the greatest and the sum of each index along an axis of float32 tensors that have elements:
        float64 [channels, 3] by name.
        """
        self._driver.activate()
        counts = [tensors[name].shape[axes[name]] for name in tensors]
        starts = [3 * sum(counts[:k]) for k in range(len(counts) + 1)]
        results = self._room(8 * starts[-1])
        for tensor, axis, count, start in zip(tensors.values(), map(axes.__getitem__, tensors), counts, starts):
            inner = prod(tensor.shape[axis + 1 :])
            place = results + 8 * start
            self._launch("reduce_channels", count, tensor.address, tensor.elements, count, inner, place)
        found = self._fetched(results, (starts[-1] // 3, 3), np.float64)
        return {name: found[start // 3 :][:count] for name, start, count in zip(tensors, starts, counts)}

    def _tops(self, tensors: Sequence[DeviceTensor]) -> Array:
        results = self._room(4 * _BLOCKS * len(tensors))
        for k, tensor in enumerate(tensors):
            self._launch("largest", _BLOCKS, tensor.address, tensor.elements, results + 4 * _BLOCKS * k)
        return self._fetched(results, (len(tensors), _BLOCKS), np.float32).max(1, initial=0.0)

    def _counts(self, tensors: Sequence[DeviceTensor], limits: Sequence[float]) -> Array:
        results, rows = self._room(8 * _ROW * len(tensors)), self._rows.address
        for k, (tensor, limit) in enumerate(zip(tensors, limits, strict=True)):
            self._launch("count", _BLOCKS, tensor.address, tensor.elements, float(factor_of(limit)), rows)
            self._launch("sum_rows", -(-_ROW // _THREADS), rows, _BLOCKS, results + 8 * _ROW * k)
        return self._fetched(results, (len(tensors), _ROW), np.int64)

    def _room(self, size: int) -> int:
        if self._results is None or self._results.size < size:
            self._results = DeviceBlock(self._driver, size)
        return self._results.address

    def _launch(self, name: str, blocks: int, *values: float) -> None:
        kinds: list[Any] = [ctypes.c_uint64 if kind.endswith("*") else _CTYPES[kind] for kind in _ARGUMENTS[name]]
        held = [kind(value) for kind, value in zip(kinds, values, strict=True)]
        pointers = (ctypes.c_void_p * len(held))(*[ctypes.addressof(value) for value in held])
        size = (blocks, 1, 1), (_THREADS, 1, 1)
        self._driver.launch(self._functions[name], *size, 0, self._stream, pointers)

    def _fetched(self, address: int, shape: tuple[int, ...], dtype: type[np.generic]) -> Array:
        array = np.empty(shape, dtype)
        self._driver.copy_to_host(array.ctypes.data, address, array.nbytes, self._stream)
        self._driver.synchronize(self._stream)
        return array


def compiled() -> dict[str, bytes]:
    """The kernels' machine code for the GPU of this machine, from the kernel cache where they are known."""
    arch = cuda_target().arch
    text = _TEXT.read_text(encoding="utf-8")
    sources = {name: KernelSource(name, text, kinds, _THREADS, 0) for name, kinds in _ARGUMENTS.items()}
    return {name: cubins[arch].code for name, cubins in compile_kernels(sources, architectures=[arch]).items()}
