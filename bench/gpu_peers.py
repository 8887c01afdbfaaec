"""PyTorch, and onnxruntime where it has a GPU, on the same network: calls that queue one run on a given stream.

Each peer is prepared as one would who wants speed from it: native modules where there are some, channels-last tensors
for convolutional networks, cuDNN's benchmark mode, CUDA graphs. A peer that fails says so and is left out.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gpu_cases import Arrays, Case
from onnx import numpy_helper

Call = Callable[[], Any]


@dataclass(frozen=True)
class Peer:
    """A way to run the network: `call` queues one run, `outputs` gives what a run computes.

    `memory` is what a captured graph reads and does not own: weights and inputs.
    """

    name: str
    call: Call
    outputs: Callable[[], Arrays]
    memory: object = None


@dataclass(frozen=True)
class Recipe:
    """How to make a peer; `tf32` lets it round the factors of float32 products to 10 bits."""

    name: str
    graph: bool = False
    channels_last: bool = False
    tf32: bool = False
    compiled: str = ""


class TorchPeers:
    """The peers of one case that use PyTorch."""

    def __init__(self, case: Case, feeds: Arrays, stream: Any) -> None:
        import torch

        self._torch, self._case, self._feeds, self._stream = torch, case, feeds, stream
        self._model = case.proto()
        self._half = case.precision == "fp16"
        torch.backends.cudnn.benchmark = True

    def recipes(self) -> Iterator[Recipe]:
        """Those that need no compiler; at float32 with PyTorch's fast rounding and without."""
        pictures = any(array.ndim == 4 for array in self._feeds.values())
        fast = () if self._half else (True,)
        for tf32 in (*fast, False):
            suffix = " tf32" if tf32 else ""
            if tf32 or self._half:
                yield Recipe(f"eager{suffix}", channels_last=pictures, tf32=tf32)
            yield Recipe(f"graph{suffix}", graph=True, tf32=tf32)
            if pictures:
                yield Recipe(f"graph nhwc{suffix}", graph=True, channels_last=True, tf32=tf32)

    def compiled_recipes(self, mode: str) -> Iterator[Recipe]:
        """PyTorch's compiler, its kernels in a CUDA graph."""
        pictures = any(array.ndim == 4 for array in self._feeds.values())
        for tf32 in (False,) if self._half else (True, False):
            yield Recipe("compile" + (" tf32" if tf32 else ""), True, pictures, tf32, mode)

    def make(self, recipe: Recipe) -> Peer:
        """Prepare a peer; whatever PyTorch cannot do is an exception."""
        torch = self._torch
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = recipe.tf32
        with torch.inference_mode(), torch.cuda.stream(self._stream):
            module, inputs, names = self._module(recipe.channels_last)
            if recipe.compiled:
                torch._dynamo.reset()  # pyright: ignore[reportPrivateUsage]
                mode = "max-autotune-no-cudagraphs" if recipe.compiled == "max-autotune" else recipe.compiled
                module = torch.compile(module, mode=mode, dynamic=False)
            run = self._runner(module, inputs)
            for _ in range(3):
                run()
            self._stream.synchronize()
            call = self._captured(run) if recipe.graph else run
        return Peer(recipe.name, self._on_stream(call), lambda: self._fetched(call, names), (module, inputs))

    def _module(self, channels_last: bool) -> tuple[Any, list[Any], list[str]]:
        from onnx_to_torch import OnnxModule
        from torch_networks import native_module

        torch = self._torch
        weights = {one.name: one for one in self._model.graph.initializer}
        inputs = [one.name for one in self._model.graph.input if one.name not in weights]
        names = [one.name for one in self._model.graph.output]
        module = None
        if self._case.model is None:
            arrays = {name: numpy_helper.to_array(one) for name, one in weights.items()}
            module = native_module(self._case.network, arrays)
        dtype = torch.float16 if self._half else torch.float32
        if module is None:
            module = OnnxModule(self._model, dtype=dtype, channels_last=channels_last).eval()
        else:
            module = module.to("cuda", dtype)
            if channels_last:
                module = module.to(memory_format=torch.channels_last)
        return module, [self._input(self._feeds[name], channels_last) for name in inputs], names

    def _input(self, array: np.ndarray[Any, np.dtype[Any]], channels_last: bool) -> Any:
        torch = self._torch
        tensor = torch.from_numpy(array).cuda()
        if tensor.is_floating_point() and self._half:
            tensor = tensor.half()
        if channels_last and tensor.dim() == 4:
            tensor = tensor.contiguous(memory_format=torch.channels_last)
        return tensor

    @staticmethod
    def _runner(module: Any, inputs: list[Any]) -> Call:
        def run() -> list[Any]:
            outputs = module(*inputs)
            return list(outputs) if isinstance(outputs, list | tuple) else [outputs]

        return run

    def _captured(self, run: Call) -> Call:
        torch = self._torch
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self._stream):
            outputs = run()

        def replay() -> list[Any]:
            graph.replay()
            return outputs

        return replay

    def _on_stream(self, call: Call) -> Call:
        torch, stream = self._torch, self._stream

        def queue() -> None:
            with torch.inference_mode(), torch.cuda.stream(stream):
                call()

        return queue

    def _fetched(self, call: Call, names: list[str]) -> Arrays:
        torch = self._torch
        with torch.inference_mode(), torch.cuda.stream(self._stream):
            outputs = call()
            self._stream.synchronize()
            wide = [one.float() if one.is_floating_point() else one for one in outputs]
            return {name: one.cpu().numpy() for name, one in zip(names, wide, strict=True)}


def onnxruntime_peer(case: Case, feeds: Arrays, stream: int) -> Peer | None:
    """onnxruntime's CUDA provider in a CUDA graph, inputs on the device; None where it is not installed."""
    import onnxruntime

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        return None
    model = case.proto()
    if case.precision == "fp16":
        raise NotImplementedError("onnxruntime would need a converted model")
    options = {"user_compute_stream": str(stream), "enable_cuda_graph": "1", "cudnn_conv_algo_search": "EXHAUSTIVE"}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=[("CUDAExecutionProvider", options)])
    binding = session.io_binding()
    values: Mapping[str, Any] = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy(array, "cuda", 0) for name, array in feeds.items()
    }
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    names = [one.name for one in session.get_outputs()]
    for name in names:
        binding.bind_output(name, "cuda")

    def fetched() -> Arrays:
        session.run_with_iobinding(binding)
        return dict(zip(names, binding.copy_outputs_to_cpu(), strict=True))

    fetched()
    return Peer("onnxruntime", lambda: session.run_with_iobinding(binding), fetched)
