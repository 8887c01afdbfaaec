"""The weights of a plan as a safetensors byte stream, written and read without copying the tensors.

The stream is a valid safetensors file. Each tensor starts at a multiple of 64 bytes from the stream's start, so that
kernels can use a mapped file in place; the format allows no holes, so filler tensors (`FILLER*`) stand between.
Float32 tensors that are halves, or bytes times scales (`SCALES*`), are stored as these; the metadata names them.
"""

import json
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from mlirt.errors import PlanError
from mlirt.runtime.compact_weights import CompactForm, CompactWeights, Forms, compact_form, shared_wide
from mlirt.runtime.data_types import FROM_SAFETENSORS, numpy_dtype, safetensors_name

ALIGNMENT = 64
FILLER = "mlirt.filler."
SCALES = "mlirt.scales."
FLOAT32 = "mlirt.float32"
"""The entry of the metadata with the names of tensors that are float32 in memory: a JSON list."""
MAX_HEADER = 1 << 26


@dataclass(frozen=True)
class Stream:
    """The stream that holds some weights, as often as it is read; what is stored in fewer bytes is made each time."""

    header: bytes
    bodies: Sequence[bytes | tuple[np.ndarray, CompactForm | None]]
    size: int

    def pieces(self) -> Iterator[memoryview]:
        """The bytes one after the other: those of arrays where they lie, or some rows of what is made of them."""
        yield memoryview(self.header)
        for body in self.bodies:
            if isinstance(body, bytes):
                yield memoryview(body)
                continue
            array, form = body
            parts = [np.ascontiguousarray(array)] if form is None else form.chunks(array)
            yield from (part.reshape(-1).view(np.uint8).data for part in parts)


def pieces(weights: Mapping[str, np.ndarray]) -> Iterator[memoryview]:
    """Yield the stream that holds `weights`, piece by piece, in the order of their names."""
    return stream_of(weights).pieces()


def stream_of(weights: Mapping[str, np.ndarray], forms: Forms | None = None) -> Stream:
    """The stream that holds `weights`, in the order of their names; `forms` has what is known of them and gets more."""
    header: dict[str, object] = {}
    bodies: list[bytes | tuple[np.ndarray, CompactForm | None]] = []
    position = 0
    stored, widened = _stored(weights, Forms() if forms is None else forms)
    if widened:
        header["__metadata__"] = {FLOAT32: json.dumps(widened)}
    for key in sorted(stored):
        array, form = stored[key]
        dtype = array.dtype if form is None else form.dtype
        name = safetensors_name(dtype)
        if name is None:
            raise PlanError(f"weight {key!r}: a plan cannot hold elements of type {dtype}")
        fill = -position % ALIGNMENT
        if fill:
            end = position + fill
            header[f"{FILLER}{len(header)}"] = {"dtype": "U8", "shape": [fill], "data_offsets": [position, end]}
            bodies.append(bytes(fill))
            position = end
        end = position + array.size * dtype.itemsize
        entry = {"dtype": name, "shape": list(array.shape)}
        header[key] = {**entry, "data_offsets": [position, end]}
        bodies.append((array, form))
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    return Stream(len(text).to_bytes(8, "little") + text, bodies, 8 + len(text) + position)


def _stored(
    weights: Mapping[str, np.ndarray], forms: Forms
) -> tuple[dict[str, tuple[np.ndarray, CompactForm | None]], list[str]]:
    """The tensors of the stream, and which of them become float32 when they are read."""
    stored: dict[str, tuple[np.ndarray, CompactForm | None]] = {}
    widened: list[str] = []
    for key in sorted(weights):
        if key.startswith((FILLER, SCALES)) or key == "__metadata__":
            raise PlanError(f"weight key {key!r} is reserved")
        if key not in forms:
            forms[key] = compact_form(weights[key])
        form = forms[key]
        stored[key] = weights[key], form
        if form is not None:
            widened.append(key)
            if form.scales is not None:
                stored[SCALES + key] = form.scales, None
    return stored, widened


def parse(
    stream: memoryview,
    identity: Hashable | None = None,
    forms: Forms | None = None,
    only: Collection[str] | None = None,
) -> dict[str, np.ndarray]:
    """Return the tensors of `stream` as read-only arrays; raise PlanError where it is damaged.

    They lie in the stream's own memory, but for those that are stored in fewer bytes. These are shared by all who have
    read a stream of the same `identity`, where there is one: streams with equal ones have equal bytes. `forms` gets
    those that are stored as they are: whoever wrote them has looked for fewer bytes. How to write the others follows
    from their numbers, not from what a file says of them. Where some names are asked for, `only` these are returned.
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
        wanted = only is None or key.removeprefix(SCALES) in only
        if wanted and key != "__metadata__" and not key.startswith(FILLER):
            found[key] = _tensor(key, entry, data)
    widened = [key for key in _widened(cast("dict[str, object]", header)) if only is None or key in only]
    if forms is not None:
        forms.update(dict.fromkeys(found.keys() - set(widened)))
    for key in widened:
        found[key] = _wide(key, found, identity)
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


def _wide(key: str, found: Mapping[str, np.ndarray], identity: Hashable | None) -> np.ndarray:
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
    short = CompactWeights(numbers, scales)
    array = short.wide() if identity is None else shared_wide((identity, key), short)
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
