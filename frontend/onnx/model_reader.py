"""Gets a `ModelProto` out of a path, bytes or a proto, and says in one line what is wrong with a damaged one."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import onnx
from google.protobuf.message import DecodeError

from mlirt.errors import InvalidInputError, InvalidModelError, UnsupportedError
from mlirt.frontend.onnx.stored_bytes import Stored, without_large_initializers
from mlirt.frontend.onnx.text_check import texts
from mlirt.mapped_files import map_file

ModelSource: TypeAlias = "str | os.PathLike[str] | bytes | onnx.ModelProto"

OLDEST_OPSET = 1
_PLAN = b"\x89mlirt"  # what plan files begin with
DEFAULT_DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True)
class Model:
    """A model that is read. `stored` has the raw data of large initializers, which the proto is without; `folder` is
    that of external data (`None` where the model did not come from a file).
    """

    proto: onnx.ModelProto
    stored: Stored = field(default_factory=dict[int, memoryview])
    folder: Path | None = None


def read_model(source: ModelSource | Model) -> Model:
    """Raises `InvalidModelError` for a file that is missing, truncated or not ONNX; a model that is read comes back."""
    if isinstance(source, Model):
        return source
    if isinstance(source, onnx.ModelProto):
        return Model(_checked(source, "the model"))
    if isinstance(source, bytes | bytearray | memoryview):
        return _parsed(memoryview(bytes(source)), "the model")
    try:
        path = Path(source)
    except TypeError as error:
        kind = type(source).__name__
        raise InvalidInputError(f"a model is a path, bytes or an onnx.ModelProto, but it is {kind}") from error
    return replace(_read_file(path), folder=path.parent)


def _read_file(path: Path) -> Model:
    try:
        if os.stat(path).st_size == 0:
            raise InvalidModelError(f"{path}: expected an ONNX model, but the file is empty")
        return _parsed(memoryview(map_file(path)), str(path))
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidModelError) or getattr(error, "errno", None) == errno.ENOMEM:
            raise
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise InvalidModelError(f"{path}: expected a readable ONNX model: {reason}") from error


def _parsed(content: memoryview, label: str) -> Model:
    small, stored = without_large_initializers(content)
    try:
        model = onnx.ModelProto.FromString(small)  # pyright: ignore[reportArgumentType]  (any buffer, without a copy)
    except (DecodeError, RuntimeError, ValueError, TypeError) as error:
        if "alloc failed" in str(error):
            raise MemoryError(str(error)) from error
        if bytes(content[: len(_PLAN)]) == _PLAN:
            raise InvalidModelError(f"{label}: expected a model, but it is a plan: open it with mlirt.load") from error
        raise InvalidModelError(
            f"{label}: expected an ONNX model, but it is not a readable protobuf: {error}"
        ) from error
    return Model(_checked(model, label), stored)


def _checked(model: onnx.ModelProto, label: str) -> onnx.ModelProto:
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise InvalidModelError(f"{label}: expected an ONNX model, but it has no graph")
    if not model.graph.output:
        raise InvalidModelError(f"{label}: expected an ONNX model, but its graph has no outputs")
    broken = next((text for text in texts(model) if not isinstance(text, str)), None)
    if broken is not None:
        raise InvalidModelError(f"{label}: expected names in UTF-8, got {broken!r}")
    return model


def opsets(model: onnx.ModelProto) -> dict[str, int]:
    """The version of each operator set that a model imports; the standard one is called ''."""
    found: dict[str, int] = {}
    for entry in model.opset_import:
        domain = "" if entry.domain in DEFAULT_DOMAINS else entry.domain
        found[domain] = max(entry.version, found.get(domain, 0))
    newest = onnx.defs.onnx_opset_version()
    version = found.setdefault("", 1 if not found else newest)
    if version > newest:
        raise UnsupportedError(
            f"the model needs opset {version}, the newest that the installed onnx package knows is {newest}"
        )
    if version < OLDEST_OPSET:
        raise InvalidModelError(f"the model says opset {version}, expected {OLDEST_OPSET} to {newest}")
    return found
