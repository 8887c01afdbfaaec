"""Runs on tensors that lie on the GPU: queued on the caller's stream, nothing goes through the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlirt.errors import InvalidInputError
from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.symbol_values import Shape
from mlirt.runtime.tensor_exchange import ExchangedTensor, exchanged, is_on_device


def has_device_tensors(feeds: Mapping[str, object]) -> bool:
    """Whether any input is a tensor on a GPU; what is no mapping is refused elsewhere."""
    values = getattr(feeds, "values", None)
    return values is not None and any(is_on_device(value) for value in values())


def run_on_device(
    context: ExecutionContext, manifest: Manifest, feeds: Mapping[str, Any], outputs: Mapping[str, Any], stream: int
) -> dict[str, Any]:
    """Queue a run and return `outputs`, which are written when what is on the stream has been done.

    feeds, outputs: every input and output by name, tensors on the GPU with `__dlpack__` or `__cuda_array_interface__`.
    stream: the handle of a CUDA stream; 0 is the legacy default stream. Raises `InvalidInputError`, which names the
    tensor, for another device, element type, shape or order in memory, before anything is queued.
    """
    _check_engine(manifest)
    given = manifest.given_inputs
    _check_names("input", feeds, [tensor.name for tensor in given])
    _check_names("output", outputs, [tensor.name for tensor in manifest.outputs])
    sources = [_tensor(f"input {one.name!r}", feeds[one.name], one.dtype, stream) for one in given]
    targets = [_tensor(f"output {one.name!r}", outputs[one.name], one.dtype, stream) for one in manifest.outputs]
    shapes = tuple(source.shape for source in sources)
    for tensor, target, shape in zip(manifest.outputs, targets, context.output_shapes(shapes), strict=True):
        if target.shape != tuple(shape):
            raise InvalidInputError(f"output {tensor.name!r}: expected the shape {tuple(shape)}, got {target.shape}")
    _queue(context, shapes, [one.address for one in sources], [one.address for one in targets], stream)
    return dict(outputs)


def run_at_addresses(
    context: ExecutionContext,
    manifest: Manifest,
    shapes: tuple[Shape, ...],
    inputs: Sequence[int],
    outputs: Sequence[int],
    stream: int,
) -> None:
    """As `run_on_device`, for who knows that what lies at the addresses is what the engine takes and gives."""
    _check_engine(manifest)
    _queue(context, shapes, inputs, outputs, stream)


def _check_engine(manifest: Manifest) -> None:
    if manifest.target.kind != "cuda":
        raise InvalidInputError("the inputs lie on a GPU, but the engine was built for the CPU: move them by .cpu()")
    if manifest.state:
        names = ", ".join(manifest.inputs[pair.input].name for pair in manifest.state)
        raise InvalidInputError(f"an engine with state ({names}) takes arrays on the host; the state stays on the GPU")


def _queue(
    context: ExecutionContext,
    shapes: tuple[Shape, ...],
    inputs: Sequence[int],
    outputs: Sequence[int],
    stream: int,
) -> None:
    if not context.run_at(shapes, inputs, outputs, stream):
        raise InvalidInputError(
            "the host must look at what this network computes, so that it cannot run on the GPU's memory alone: give "
            "arrays on the host"
        )


def _check_names(what: str, given: Mapping[str, Any], names: list[str]) -> None:
    for name in names:
        if name not in given:
            raise InvalidInputError(f"{what} {name!r} is missing: a run on the GPU's memory needs all of {names}")
    for name in given:
        if name not in names:
            raise InvalidInputError(f"the engine has no {what} {name!r}; it has {names}")


def _tensor(what: str, value: Any, dtype: str, stream: int) -> ExchangedTensor:
    if not is_on_device(value):
        raise InvalidInputError(f"{what}: the tensor lies on the host, the others on a GPU; all have one place")
    found = exchanged(what, value, stream)
    if found.dtype != dtype:
        raise InvalidInputError(f"{what}: expected data type {dtype}, got {found.dtype}")
    if not found.is_dense:
        raise InvalidInputError(f"{what}: the tensor has gaps or another order in memory; call .contiguous() on it")
    return found
