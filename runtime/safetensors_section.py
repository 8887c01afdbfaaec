"""The weights of a plan as a safetensors byte stream, written and read without copying the tensors.

The stream is a valid safetensors file. Each tensor starts at a multiple of 64 bytes from the stream's start, so that
kernels can use a mapped file in place; the format allows no holes, so filler tensors (`FILLER*`) stand between.
Float32 tensors that are halves, or bytes times scales (`SCALES*`), are stored as these; the metadata names them.
"""

import json
from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np

from mlirt.errors import PlanError
from mlirt.runtime.compact_weights import CompactWeights, compact
from mlirt.runtime.data_types import FROM_SAFETENSORS, SAFETENSORS_NAMES, numpy_dtype

ALIGNMENT = 64
FILLER = "mlirt.filler."
SCALES = "mlirt.scales."
FLOAT32 = "mlirt.float32"
"""The entry of the metadata with the names of tensors that are float32 in memory: a JSON list."""
MAX_HEADER = 1 << 26


def pieces(weights: Mapping[str, np.ndarray]) -> Iterator[memoryview]:
    """Yield the stream that holds `weights`, piece by piece, in the order of their names."""
    header: dict[str, object] = {}
    bodies: list[memoryview] = []
    position = 0
    stored, widened = _stored(weights)
    if widened:
        header["__metadata__"] = {FLOAT32: json.dumps(widened)}
    for key in sorted(stored):
        array = np.ascontiguousarray(stored[key])
        if array.dtype.name not in SAFETENSORS_NAMES:
            raise PlanError(f"weight {key!r}: a plan cannot hold elements of type {array.dtype}")
        fill = -position % ALIGNMENT
        if fill:
            end = position + fill
            header[f"{FILLER}{len(header)}"] = {"dtype": "U8", "shape": [fill], "data_offsets": [position, end]}
            bodies.append(memoryview(bytes(fill)))
            position = end
        end = position + array.nbytes
        entry = {"dtype": SAFETENSORS_NAMES[array.dtype.name], "shape": list(stored[key].shape)}
        header[key] = {**entry, "data_offsets": [position, end]}
        bodies.append(array.reshape(-1).view(np.uint8).data)
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    yield memoryview(len(text).to_bytes(8, "little"))
    yield memoryview(text)
    yield from bodies


def _stored(weights: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], list[str]]:
    """The tensors of the stream, and which of them become float32 when they are read."""
    stored: dict[str, np.ndarray] = {}
    widened: list[str] = []
    for key in sorted(weights):
        if key.startswith((FILLER, SCALES)) or key == "__metadata__":
            raise PlanError(f"weight key {key!r} is reserved")
        short = compact(weights[key])
        stored[key] = weights[key] if short is None else short.numbers
        if short is not None:
            widened.append(key)
            if short.scales is not None:
                stored[SCALES + key] = short.scales
    return stored, widened


def parse(stream: memoryview) -> dict[str, np.ndarray]:
    """Return the tensors of `stream` as read-only arrays; raise PlanError where it is damaged.

    They lie in the stream's own memory, but for those that are stored in fewer bytes.
    """
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
    for key in _widened(cast("dict[str, object]", header)):
        found[key] = _wide(key, found)
    return {key: array for key, array in found.items() if not key.startswith(SCALES)}


def _widened(header: Mapping[str, object]) -> list[str]:
    """The names in the metadata."""
    metadata = header.get("__metadata__", {})
    text = cast("dict[str, object]", metadata).get(FLOAT32, "[]") if isinstance(metadata, dict) else None
    try:
        names: object = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in cast("list[object]", names)):
        raise PlanError("weights section: its metadata is damaged")
    return cast("list[str]", names)


def _wide(key: str, found: Mapping[str, np.ndarray]) -> np.ndarray:
    """The float32 numbers of a tensor that is stored in fewer bytes."""
    numbers, scales = found.get(key), found.get(SCALES + key)
    if numbers is None or numbers.dtype != (np.float16 if scales is None else np.int8):
        raise PlanError(f"weight {key[:80]!r}: not stored as what becomes float32")
    if scales is not None:
        fits = scales.ndim == numbers.ndim and all(
            one in (1, length) for one, length in zip(scales.shape, numbers.shape, strict=True)
        )
        if scales.dtype != np.float32 or not fits:
            raise PlanError(f"weight {key[:80]!r}: its scales do not fit it")
    array = CompactWeights(numbers, scales).wide()
    array.flags.writeable = False
    return array


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
