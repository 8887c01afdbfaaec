"""The weights of a plan as a safetensors byte stream, written and read without copying the tensors.

The stream is a valid safetensors file. Each tensor starts at a multiple of 64 bytes from the stream's start, so that
kernels can use a mapped file in place; the format allows no holes, so filler tensors (`FILLER*`) stand between.
"""

import json
from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np

from mlirt.errors import PlanError
from mlirt.runtime.data_types import FROM_SAFETENSORS, SAFETENSORS_NAMES, numpy_dtype

ALIGNMENT = 64
FILLER = "mlirt.filler."
MAX_HEADER = 1 << 26


def pieces(weights: Mapping[str, np.ndarray]) -> Iterator[memoryview]:
    """Yield the stream that holds `weights`, piece by piece, in the order of their names."""
    header: dict[str, object] = {}
    bodies: list[memoryview] = []
    position = 0
    for key in sorted(weights):
        if key.startswith(FILLER) or key == "__metadata__":
            raise PlanError(f"weight key {key!r} is reserved")
        array = np.ascontiguousarray(weights[key])
        if array.dtype.name not in SAFETENSORS_NAMES:
            raise PlanError(f"weight {key!r}: a plan cannot hold elements of type {array.dtype}")
        fill = -position % ALIGNMENT
        if fill:
            end = position + fill
            header[f"{FILLER}{len(header)}"] = {"dtype": "U8", "shape": [fill], "data_offsets": [position, end]}
            bodies.append(memoryview(bytes(fill)))
            position = end
        end = position + array.nbytes
        entry = {"dtype": SAFETENSORS_NAMES[array.dtype.name], "shape": list(weights[key].shape)}
        header[key] = {**entry, "data_offsets": [position, end]}
        bodies.append(array.reshape(-1).view(np.uint8).data)
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    yield memoryview(len(text).to_bytes(8, "little"))
    yield memoryview(text)
    yield from bodies


def parse(stream: memoryview) -> dict[str, np.ndarray]:
    """Return the tensors of `stream` as read-only arrays over its own memory; raise PlanError where it is damaged."""
    if len(stream) < 8:
        raise PlanError("weights section: shorter than its header")
    length = int.from_bytes(stream[:8], "little")
    if length > min(MAX_HEADER, len(stream) - 8):
        raise PlanError("weights section: the header is longer than the section")
    try:
        header: object = json.loads(bytes(stream[8 : 8 + length]))
    except (ValueError, RecursionError) as error:
        raise PlanError("weights section: the header is not JSON") from error
    if not isinstance(header, dict):
        raise PlanError("weights section: the header is not a table")
    data = stream[8 + length :]
    found: dict[str, np.ndarray] = {}
    for key, entry in cast("dict[str, object]", header).items():
        if key != "__metadata__" and not key.startswith(FILLER):
            found[key] = _tensor(key, entry, data)
    return found


def _tensor(key: str, entry: object, data: memoryview) -> np.ndarray:
    where = f"weight {key[:80]!r}"
    fields = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
    name, shape, span = fields.get("dtype"), fields.get("shape"), fields.get("data_offsets")
    if not isinstance(name, str) or name not in FROM_SAFETENSORS:
        raise PlanError(f"{where}: unknown data type {str(name)[:40]!r}")
    dims, ends = _naturals(shape), _naturals(span)
    if dims is None or len(dims) > 32 or ends is None or len(ends) != 2:
        raise PlanError(f"{where}: malformed shape or offsets")
    dtype = numpy_dtype(FROM_SAFETENSORS[name])
    count = 1
    for dim in dims:
        count *= dim
    begin, end = ends
    if begin > end or end > len(data) or end - begin != count * dtype.itemsize:
        raise PlanError(f"{where}: its bytes do not fit its shape or lie outside of the section")
    array = np.frombuffer(data[begin:end], np.uint8).view(dtype).reshape(dims)
    array.flags.writeable = False
    return array


def _naturals(value: object) -> list[int] | None:
    if not isinstance(value, list):
        return None
    items = cast("list[object]", value)
    numbers = [item for item in items if isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 2**48]
    return numbers if len(numbers) == len(items) else None
