"""Gets a `ModelProto` out of a path, bytes or a proto, and says in one line what is wrong with a damaged one."""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path
from typing import TypeAlias

import onnx
from google.protobuf.message import DecodeError

from mlirt.errors import InvalidInputError, InvalidModelError, UnsupportedError
from mlirt.frontend.onnx.text_check import texts

ModelSource: TypeAlias = "str | os.PathLike[str] | bytes | onnx.ModelProto"

OLDEST_OPSET = 1
DEFAULT_DOMAINS = ("", "ai.onnx")


def read_model(source: ModelSource) -> tuple[onnx.ModelProto, Path | None]:
    """The model and the folder of its external data (`None` where it did not come from a file).

    Raises `InvalidModelError` for a file that is missing, truncated or not ONNX.
    """
    if isinstance(source, onnx.ModelProto):
        return _checked(source, "the model"), None
    if isinstance(source, bytes | bytearray | memoryview):
        return _parsed(bytes(source), "the model"), None
    try:
        path = Path(source)
    except TypeError as error:
        kind = type(source).__name__
        raise InvalidInputError(f"a model is a path, bytes or an onnx.ModelProto, but it is {kind}") from error
    return _read_file(path), path.parent


def _read_file(path: Path) -> onnx.ModelProto:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise InvalidModelError(f"{path}: expected an ONNX model, but the file is empty")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return _parsed(content, str(path))
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidModelError) or getattr(error, "errno", None) == errno.ENOMEM:
            raise
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise InvalidModelError(f"{path}: expected a readable ONNX model: {reason}") from error


def _parsed(content: bytes | mmap.mmap, label: str) -> onnx.ModelProto:
    try:
        with memoryview(content) as view:
            model = onnx.ModelProto.FromString(view)  # pyright: ignore[reportArgumentType]  (any buffer, without a copy)
    except (DecodeError, RuntimeError, ValueError, TypeError) as error:
        if "alloc failed" in str(error):
            raise MemoryError(str(error)) from error
        raise InvalidModelError(
            f"{label}: expected an ONNX model, but it is not a readable protobuf: {error}"
        ) from error
    return _checked(model, label)


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
