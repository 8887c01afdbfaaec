"""Arrays on a pipe between a benchmark and the processor that runs its plans."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def write_message(stream: Any, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """A line of JSON and the bytes of arrays behind it."""
    described = [[name, str(value.dtype), list(value.shape)] for name, value in arrays.items()]
    stream.write(json.dumps({**header, "arrays": described}).encode() + b"\n")
    for value in arrays.values():
        stream.write(value.tobytes())
    stream.flush()


def read_message(stream: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """What `write_message` wrote; raises EOFError at the end."""
    line = stream.readline()
    if not line:
        raise EOFError
    header: dict[str, Any] = json.loads(line)
    arrays: dict[str, Array] = {}
    for name, kind, shape in header["arrays"]:
        element = _element(kind)
        size = int(np.prod(shape, dtype=np.int64)) * element.itemsize
        data = stream.read(size)
        if len(data) != size:
            raise EOFError
        arrays[name] = np.frombuffer(data, element).reshape(shape)
    return header, arrays


def _element(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
