"""Runs of engines on PyTorch's tensors where they lie: on the CPU without copies, on a GPU on the current stream."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from mlirt.errors import InvalidInputError
from mlirt.frontend.torch.elements import array_of, dtype_of_element, tensor_of
from mlirt.runtime.device_run import run_at_addresses
from mlirt.runtime.engine import Engine
from mlirt.runtime.engine_interface import EngineLike

SHARED_ELEMENTS = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
"""Element types that NumPy and PyTorch both have, by the name that both give them."""
_OF_NUMPY = {getattr(torch, name) for name in SHARED_ELEMENTS}


def run_tensors(engine: EngineLike, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs by name, tensors on the device of the inputs."""
    on_gpu = [name for name, tensor in feeds.items() if tensor.is_cuda]
    if not on_gpu:
        if isinstance(engine, Engine):
            found = engine.run({name: one if _is_plain(one) else array_of(one) for name, one in feeds.items()})
        else:
            found = engine.run({name: array_of(one) for name, one in feeds.items()})
        return {name: tensor_of(array) for name, array in found.items()}
    if not isinstance(engine, Engine) or engine.target != "cuda":
        raise InvalidInputError(f"input {on_gpu[0]!r} lies on a GPU, but the engine was not built for one: use .cpu()")
    return _on_gpu(engine, feeds, feeds[on_gpu[0]].device)


def _is_plain(tensor: Any) -> bool:
    """Whether NumPy can have a tensor's memory as it is; a run takes such a tensor without a way round."""
    return tensor.dtype in _OF_NUMPY and not tensor.requires_grad and not tensor.is_neg()


def _on_gpu(engine: Engine, feeds: Mapping[str, Any], device: Any) -> dict[str, Any]:
    """Results are in memory of PyTorch's allocator, written when the current stream gets there."""
    sources = [_dense(one.name, one.dtype, feeds[one.name], device) for one in engine.inputs]
    shapes = tuple([tuple(source.shape) for source in sources])
    targets = [
        torch.empty(shape, dtype=dtype_of_element(one.dtype), device=device)
        for one, shape in zip(engine.outputs, engine.context.output_shapes(shapes), strict=True)
    ]
    inputs, outputs = ([tensor.data_ptr() for tensor in tensors] for tensors in (sources, targets))
    stream = torch.cuda.current_stream(device).cuda_stream
    run_at_addresses(engine.context, engine.plan.manifest, shapes, inputs, outputs, stream)
    return {one.name: target for one, target in zip(engine.outputs, targets, strict=True)}


def _dense(name: str, dtype: str, tensor: Any, device: Any) -> Any:
    """A tensor on the device in the order of rows."""
    if tensor.dtype != dtype_of_element(dtype):
        raise InvalidInputError(f"input {name!r}: expected data type {dtype}, got {tensor.dtype}")
    return tensor.to(device).contiguous()
