"""Arrays out of `TensorProto`s: raw bytes without a copy, external data from the model's folder and nowhere else."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from onnx import TensorProto
from xdsl.ir import Attribute

from mlirt.dialects.tensor_types import element_type
from mlirt.errors import InvalidModelError, UnsupportedError
from mlirt.frontend.onnx.narrow_types import NARROW_TYPES, read_narrow
from mlirt.mapped_files import map_file

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

MAX_TENSOR_BYTES = 1 << 40

_NAMES: dict[int, str] = {
    TensorProto.FLOAT: "float32",
    TensorProto.UINT8: "uint8",
    TensorProto.INT8: "int8",
    TensorProto.UINT16: "uint16",
    TensorProto.INT16: "int16",
    TensorProto.INT32: "int32",
    TensorProto.INT64: "int64",
    TensorProto.BOOL: "bool",
    TensorProto.FLOAT16: "float16",
    TensorProto.DOUBLE: "float64",
    TensorProto.UINT32: "uint32",
    TensorProto.UINT64: "uint64",
    TensorProto.BFLOAT16: "bfloat16",
}
_FIELDS: dict[str, type[Any]] = {
    "float_data": np.float32,
    "int32_data": np.int64,
    "int64_data": np.int64,
    "double_data": np.float64,
    "uint64_data": np.uint64,
}
_FIELD_OF = {
    "float32": "float_data",
    "float64": "double_data",
    "int64": "int64_data",
    "uint64": "uint64_data",
    "uint32": "uint64_data",
}


def element_name(data_type: int, what: str) -> str:
    """The NumPy dtype name of an ONNX data type; raises where it is unknown, or known and not supported."""
    if data_type in _NAMES:
        return _NAMES[data_type]
    known: dict[int, str] = {value: name for name, value in TensorProto.DataType.items()}
    if data_type not in known or data_type == TensorProto.UNDEFINED:
        raise InvalidModelError(f"{what} has data type {data_type}, which ONNX does not define")
    raise UnsupportedError(
        f"{what} has element type {known[data_type].lower()}, which is not supported yet; "
        f"cast it to one of {', '.join(_NAMES.values())}"
    )


def element(data_type: int, what: str) -> Attribute:
    """The element type in which a network stores tensors of an ONNX data type."""
    return element_type(storage_name(data_type, what))


def storage_name(data_type: int, what: str) -> str:
    """As `element_name`; for a narrow type the one that its numbers are stored in."""
    narrow = NARROW_TYPES.get(data_type)
    return element_name(data_type, what) if narrow is None else narrow.storage


def dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype called `name`."""
    if name in ("bfloat16", "float8_e4m3fn"):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


def shape_of(tensor: TensorProto, what: str) -> tuple[int, ...]:
    """The dimensions of a stored tensor; raises for negative or absurd ones."""
    shape = tuple(tensor.dims)
    width = dtype(storage_name(tensor.data_type, what)).itemsize
    if any(size < 0 for size in shape):
        raise InvalidModelError(f"{what} has the shape {list(shape)}; lengths cannot be negative")
    if len(shape) > 16 or math.prod(shape) * width > MAX_TENSOR_BYTES:
        raise InvalidModelError(f"{what} has the shape {list(shape)[:16]}, which is larger than any network needs")
    return shape


def read_tensor(
    tensor: TensorProto, what: str, folder: Path | None = None, raw: memoryview | None = None
) -> Array:
    """The array of a stored tensor, read-only; raises `InvalidModelError` where bytes and shape disagree.

    `raw` is its raw data, where that is not in the tensor.
    """
    shape = shape_of(tensor, what)
    if tensor.data_type in NARROW_TYPES and tensor.data_location != TensorProto.EXTERNAL:
        return read_narrow(tensor if raw is None else _with_raw_data(tensor, raw), what)
    kind = dtype(element_name(tensor.data_type, what))
    if tensor.data_location == TensorProto.EXTERNAL:
        flat = _external(tensor, what, folder, kind, math.prod(shape) * kind.itemsize)
    elif tensor.HasField("raw_data"):
        flat = _raw(tensor.raw_data if raw is None else raw, what, kind)
    else:
        flat = _typed(tensor, what, kind)
    if flat.size != math.prod(shape):
        raise InvalidModelError(f"{what} holds {flat.size} elements, its shape {list(shape)} needs {math.prod(shape)}")
    array = flat.reshape(shape)
    array.flags.writeable = False
    return array


def _with_raw_data(tensor: TensorProto, raw: memoryview) -> TensorProto:
    whole = TensorProto()
    whole.CopyFrom(tensor)
    whole.raw_data = bytes(raw)
    return whole


def _raw(content: bytes | memoryview, what: str, kind: np.dtype[Any]) -> Array:
    if len(content) % kind.itemsize:
        raise InvalidModelError(f"{what} holds {len(content)} bytes, which is no whole number of {kind.name} elements")
    flat = np.frombuffer(content, np.uint8 if kind == np.bool_ else kind)
    return flat != 0 if kind == np.bool_ else flat


def _typed(tensor: TensorProto, what: str, kind: np.dtype[Any]) -> Array:
    field = _FIELD_OF.get(kind.name, "int32_data")
    others = [name for name in _FIELDS if name != field and len(getattr(tensor, name))]
    if others:
        raise InvalidModelError(f"{what} of type {kind.name} keeps its elements in {others[0]}, expected {field}")
    values = np.array(getattr(tensor, field), _FIELDS[field])
    if kind.name in ("float16", "bfloat16"):
        return values.astype(np.uint16).view(kind)
    return values.astype(kind)


def _external(tensor: TensorProto, what: str, folder: Path | None, kind: np.dtype[Any], size: int) -> Array:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise InvalidModelError(
            f"{what} lies in the file {location!r} beside the model; give the model as a path, not as bytes"
        )
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", size))
    except ValueError as error:
        raise InvalidModelError(f"{what} has external data with a malformed offset or length: {error}") from error
    path = _inside(folder, location, what)
    if length != size:
        raise InvalidModelError(f"{what} has external data of {length} bytes, but its shape and type take {size}")
    if offset < 0 or offset + length > path.stat().st_size:
        raise InvalidModelError(
            f"{what} needs {size} bytes at offset {offset} of {path.name}, which holds {path.stat().st_size}"
        )
    if not size:
        return np.empty(0, kind)
    mapped = np.frombuffer(map_file(path), np.uint8, length, offset)
    return mapped != 0 if kind == np.bool_ else mapped.view(kind)


def _inside(folder: Path, location: str, what: str) -> Path:
    """The file at `location`; links are followed first, so that none leads out of the model's folder."""
    try:
        path = (folder / location).resolve()
        inside = bool(location) and path.is_relative_to(folder.resolve()) and path.is_file()
    except (OSError, ValueError):
        inside, path = False, folder
    if not inside:
        raise InvalidModelError(f"{what} lies in {location!r}, which is no file inside the model's folder")
    return path
