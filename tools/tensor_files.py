"""Tensors on disk for rt-exec: inputs from .npy, .npz or raw .bin files (or random), outputs to JSON or .npz."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from zipfile import BadZipFile

from mlirt.errors import InvalidInputError
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.random_inputs import random_input

if TYPE_CHECKING:
    import numpy as np

    from mlirt.runtime.engine_interface import TensorDescription

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

Shape = tuple[int, ...]


def read_inputs(
    inputs: Sequence[TensorDescription], shapes: Mapping[str, Shape], paths: Mapping[str, str]
) -> dict[str, Array]:
    """An array for each input: from its file, else random (floats in [-1, 1], whole numbers 0 or 1)."""
    names = [tensor.name for tensor in inputs]
    for name in paths:
        if name not in names:
            raise InvalidInputError(f"--loadInputs: the engine has no input {name!r}; its inputs are {names}")
    return {
        tensor.name: _read(tensor, shapes.get(tensor.name), paths[tensor.name])
        if tensor.name in paths
        else random_input(tensor.dtype, shapes[tensor.name], seed)
        for seed, tensor in enumerate(inputs)
    }


def known_shapes(paths: Mapping[str, str]) -> dict[str, Shape]:
    """The shapes of the arrays in the .npy and .npz files among `paths`."""
    return {name: _load(name, path).shape for name, path in paths.items() if _has_arrays(path)}


def _has_arrays(path: str) -> bool:
    return path.lower().endswith((".npy", ".npz"))


def _load(name: str, path: str) -> Array:
    """The array of a .npy file, or that of this name or the only one in a .npz file."""
    import numpy as np

    try:
        loaded: Array | Mapping[str, Array] = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        chosen = name if name in loaded or len(loaded) != 1 else next(iter(loaded))
        if chosen in loaded:
            return loaded[chosen]
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise InvalidInputError(f"--loadInputs: {name}: cannot read {path}: {_reason(error)}") from error
    raise InvalidInputError(f"--loadInputs: {path} has no array {name!r}; it has {', '.join(loaded) or 'none'}")


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error).split("\n")[0]


def _read(tensor: TensorDescription, shape: Shape | None, path: str) -> Array:
    import numpy as np

    if _has_arrays(path):
        return np.asarray(_load(tensor.name, path), order="C")
    dtype = numpy_dtype(tensor.dtype)
    if shape is None:
        raise InvalidInputError(f"--loadInputs: {tensor.name}: a raw file has no shape; give it with --shapes")
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InvalidInputError(f"--loadInputs: {tensor.name}: cannot read {path}: {_reason(error)}") from error
    expected = math.prod(shape) * dtype.itemsize
    if len(data) != expected:
        raise InvalidInputError(
            f"--loadInputs: {tensor.name}: {path} has {len(data)} bytes, "
            f"but {tensor.dtype} of shape {shape} has {expected}"
        )
    return np.frombuffer(data, np.uint8).view(dtype).reshape(shape).copy()


def outputs_file(outputs: Mapping[str, Array], path: str) -> bytes:
    """The bytes of a .npz file, or of trtexec's JSON: [{"name", "dimensions": "1x3", "values"}]."""
    import numpy as np

    readable = {name: _readable(array) for name, array in outputs.items()}
    if path.endswith(".npz"):
        stream = BytesIO()
        np.savez(stream, allow_pickle=False, **readable)
        return stream.getvalue()
    records = [
        {"name": name, "dimensions": dimensions(array.shape), "values": array.reshape(-1).tolist()}
        for name, array in readable.items()
    ]
    return json.dumps(records).encode()


def _readable(array: Array) -> Array:
    """bfloat16 and float8 as float32: other programs know no such file type."""
    import numpy as np

    return array.astype(np.float32) if array.dtype.kind == "V" else array


def dimensions(shape: Shape) -> str:
    """`1x3x224x224`."""
    return "x".join(map(str, shape))


def output_lines(outputs: Mapping[str, Array]) -> list[str]:
    """All values, as trtexec dumps them."""
    lines = ["Output Tensors:"]
    for name, array in outputs.items():
        lines.append(f"{name}: ({dimensions(array.shape)})")
        lines.append(" ".join(f"{value:g}" for value in _readable(array).reshape(-1).tolist()))
    return lines
