"""PyTorch as a system under test: torch.compile, on a GPU its kernels in a CUDA graph for each size of a batch.

Prepared as one would who wants speed: native modules where bench/torch_networks.py has them, channels-last pictures,
TF32 off in float32 as everywhere here, cuDNN's benchmark mode. A batch has pinned memory, a stream and static tensors
of its own, so that copies of one lie beside the kernels of another. There is no int8 in it.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from onnx_to_torch import OnnxModule
from torch_networks import native_module

from mlperf.systems import Array, Outputs, Request

_FRAMES = 1 << 16
"""A module of ONNX nodes is as many frames as nodes: beyond the usual limit they would run without the compiler."""


class TorchSystem:
    """A compiled module with a lane for each batch that runs at the same time."""

    joins_arrays = False

    def __init__(self, request: Request) -> None:
        self.runs_at_once = request.runs_at_once
        torch.backends.cudnn.benchmark = True
        torch._dynamo.config.recompile_limit = _FRAMES  # pyright: ignore[reportPrivateUsage]
        self._model = onnx.load(str(request.model))
        self._device, self._is_half = request.device, request.precision == "fp16"
        self._names = [one.name for one in self._model.graph.output]
        known = {one.name for one in self._model.graph.initializer}
        self._inputs = [one.name for one in self._model.graph.input if one.name not in known]
        if request.device == "cpu":
            torch.set_num_threads(request.threads)
        self._sizes = [request.most] if request.is_fixed else _sizes_up_to(request.most)
        self._lanes: queue.SimpleQueue[_Lane] = queue.SimpleQueue()
        for _ in range(request.runs_at_once):
            self._lanes.put(_Lane(self))

    def _eager(self) -> Any:
        graph = self._model.graph
        dtype = torch.float16 if self._is_half else torch.float32
        pictures = len(graph.input[0].type.tensor_type.shape.dim) == 4
        weights = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
        module = native_module(graph.name, weights)
        if module is None:
            return OnnxModule(self._model, self._device, dtype, channels_last=pictures).eval()
        module = module.to(self._device, dtype)
        return module.to(memory_format=torch.channels_last) if pictures else module

    def placed(self, tensor: Any) -> Any:
        """A tensor on the device as the module takes it."""
        moved = tensor.to(self._device, non_blocking=True)
        if moved.is_floating_point() and self._is_half:
            moved = moved.half()
        return moved.contiguous(memory_format=torch.channels_last) if moved.dim() == 4 else moved

    def compiled(self, tensors: list[Any]) -> Callable[[], list[Any]]:
        """What computes on tensors of one size; the first run notes what is known of shapes."""
        module = self._eager()
        module(*tensors)
        mode = "max-autotune-no-cudagraphs" if self.is_on_gpu else None
        fast = torch.compile(module, mode=mode, dynamic=False)

        def run() -> list[Any]:
            outputs = fast(*tensors)
            return list(outputs) if isinstance(outputs, list | tuple) else [outputs]

        return run

    @property
    def is_on_gpu(self) -> bool:
        """Whether it computes on a GPU."""
        return self._device == "cuda"

    def host_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        kind = torch.from_numpy(np.empty(0, dtype)).dtype
        return torch.empty(shape, dtype=kind, pin_memory=self.is_on_gpu).numpy()

    def run(self, feeds: Mapping[str, Array]) -> Outputs:
        arrays = [feeds[name] for name in self._inputs]
        rows = len(arrays[0])
        size = next(one for one in self._sizes if one >= rows)
        lane = self._lanes.get()
        try:
            outputs = lane.run(arrays, rows, size)
            return dict(zip(self._names, [one[:rows] for one in outputs], strict=True))
        finally:
            self._lanes.put(lane)

    def close(self) -> None:
        while not self._lanes.empty():
            self._lanes.get()


def _sizes_up_to(most: int) -> list[int]:
    """1, 2, 4 and so on, and the last."""
    found = [1]
    while found[-1] < most:
        found.append(min(2 * found[-1], most))
    return found


class _Lane:
    """A stream with its tensors, for each size of a batch."""

    def __init__(self, system: TorchSystem) -> None:
        self._system = system
        self._stream = torch.cuda.Stream() if system.is_on_gpu else None
        self._kept: dict[int, _Captured] = {}

    def run(self, arrays: list[Array], rows: int, size: int) -> list[Array]:
        """Outputs of `size` rows, of which the first `rows` are those of the arrays."""
        stream = nullcontext() if self._stream is None else torch.cuda.stream(self._stream)
        with torch.inference_mode(), stream:
            if size not in self._kept:
                self._kept[size] = _Captured(self._system, arrays, size, self._stream)
            return self._kept[size].run(arrays, rows)


class _Captured:
    """The static tensors of one size, and the graph that computes on them."""

    def __init__(self, system: TorchSystem, arrays: list[Array], size: int, stream: Any) -> None:
        self._stream = stream
        pin = system.is_on_gpu
        kinds = [torch.from_numpy(array[:0]).dtype for array in arrays]
        self._host = [
            torch.zeros((size, *array.shape[1:]), dtype=kind, pin_memory=pin)
            for array, kind in zip(arrays, kinds, strict=True)
        ]
        self._static = [system.placed(one) for one in self._host]
        self._run = system.compiled(self._static)
        outputs = self._run()
        for _ in range(2):
            outputs = self._run()
        self._graph = None
        if stream is not None:
            stream.synchronize()
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph, stream=stream):
                outputs = self._run()
        self._outputs = outputs
        self._answers = [
            torch.empty(one.shape, dtype=torch.float32 if one.is_floating_point() else one.dtype, pin_memory=pin)
            for one in outputs
        ]

    def run(self, arrays: list[Array], rows: int) -> list[Array]:
        for host, static, array in zip(self._host, self._static, arrays, strict=True):
            host.numpy()[:rows] = array
            static.copy_(host, non_blocking=True)
        if self._graph is None:
            self._outputs = self._run()
        else:
            self._graph.replay()
        for answer, output in zip(self._answers, self._outputs, strict=True):
            answer.copy_(output, non_blocking=True)
        if self._stream is not None:
            self._stream.synchronize()
        return [one.numpy().copy() for one in self._answers]


def opened(request: Request) -> TorchSystem:
    """Compile the module; raises what PyTorch raises, and `Unsupported` for operators that have no rule."""
    return TorchSystem(request)
