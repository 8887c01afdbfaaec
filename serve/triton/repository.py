"""Writes a model repository for Triton Inference Server: config.pbtxt from the engine's profiles, model.py, the plan.

DIR/NAME/config.pbtxt
DIR/NAME/1/model.py
DIR/NAME/1/engine.plan
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlirt.atomic_file import write_atomically
from mlirt.errors import InvalidInputError
from mlirt.runtime.engine import Engine
from mlirt.runtime.engine_interface import TensorDescription
from mlirt.serve.batching.engine_batcher import engine_batcher
from mlirt.serve.batching.limits import Limits
from mlirt.serve.batching.signature import Signature, signature_of
from mlirt.serve.protocol.data_types import protocol_name

_MODEL = '''\
"""Runs the plan beside this file; written by rt-exec --exportTriton."""

from mlirt.serve.triton.python_model import PythonModel as TritonPythonModel

__all__ = ["TritonPythonModel"]
'''
_WITHOUT_NUMPY = ("bfloat16",)
"""Types for which Triton's Python back end has no array."""


def export_repository(engine: Engine, folder: Path, name: str, limits: Limits | None = None) -> Path:
    """Write the model `name` into the repository `folder`; its own folder is returned.

    Requests are joined where a trial finds that no row depends on another: up to `limits.max_batch`, by default the
    profiles' largest batch, or 32. Raises `InvalidInputError` for engines that Triton cannot be told about.
    """
    if not name or name in (".", "..") or "/" in name:
        raise InvalidInputError(f"{name!r} is no name for a model; expected one without /")
    rows = [found.maximum[0] for profile in engine.profiles for found in profile.values() if found.maximum]
    with engine_batcher(engine, limits or Limits(max_batch=max(rows, default=32))) as batcher:
        max_batch = batcher.max_rows if batcher.joins else 0
    text = config_text(signature_of(engine), name, max_batch, engine.target)
    version = folder / name / "1"
    version.mkdir(parents=True, exist_ok=True)
    engine.save(version / "engine.plan")
    write_atomically(version / "model.py", [_MODEL.encode()])
    write_atomically(folder / name / "config.pbtxt", [text.encode()])
    return folder / name


def config_text(signature: Signature, name: str, max_batch: int, target: str) -> str:
    """The text of config.pbtxt. `max_batch` is 0 where requests are not joined."""
    lines = [f"name: {json.dumps(name)}", 'backend: "python"', f"max_batch_size: {max_batch}"]
    for kind, tensors in (("input", signature.inputs), ("output", signature.outputs)):
        lines += [line for tensor in tensors for line in _tensor_lines(kind, tensor, max_batch > 0)]
    if max_batch:
        preferred = sorted({size for size in _usual_rows(signature) if 1 < size <= max_batch})
        sizes = f" preferred_batch_size: {preferred}" if preferred else ""
        lines.append(f"dynamic_batching {{{sizes} max_queue_delay_microseconds: 0 }}")
    lines.append(f"instance_group [ {{ count: 1 kind: {'KIND_GPU' if target == 'cuda' else 'KIND_CPU'} }} ]")
    return "\n".join(lines) + "\n"


def _usual_rows(signature: Signature) -> Iterator[int]:
    for profile in signature.profiles:
        yield from (found.optimum[0] for found in profile.values() if found.optimum)


def _tensor_lines(kind: str, tensor: TensorDescription, is_batched: bool) -> Sequence[str]:
    if tensor.dtype in _WITHOUT_NUMPY:
        raise InvalidInputError(
            f"{kind} {tensor.name!r} is {tensor.dtype}, which Triton's Python back end has no array for"
        )
    shape = tensor.shape[1:] if is_batched else tensor.shape
    dims = [dim if isinstance(dim, int) else -1 for dim in shape]
    reshape = "" if dims else " reshape: { shape: [ ] }"
    return (
        f"{kind} [ {{ name: {json.dumps(tensor.name)} data_type: TYPE_{protocol_name(tensor.dtype)} "
        f"dims: {dims or [1]}{reshape} }} ]",
    )
