"""Large initializers of a serialized model are left where they lie: the protobuf is parsed without their bytes.

A parser copies each `raw_data` into its own memory, and gives another copy to whoever reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

MIN_BYTES = 1 << 16
"""Bytes that are worth it."""

# Numbers of fields in onnx.proto.
_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9
_VARINT, _EIGHT_BYTES, _LENGTH_DELIMITED, _FOUR_BYTES = 0, 1, 2, 5
_MAX_FIELDS = 64  # of an initializer that has raw data

Stored = Mapping[int, memoryview]
"""By the number of an initializer of the main graph what its `raw_data` is."""


class _Field(NamedTuple):
    number: int
    kind: int
    start: int
    body: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.body


def without_large_initializers(content: memoryview) -> tuple[bytes | memoryview, Stored]:
    """A serialized model whose large initializers have empty raw data, and what they had.

    What is no model comes back as it is: the parser says what is wrong with it.
    """
    try:
        graphs = [field for field in _fields(content, 0, len(content)) if _is(field, _GRAPH)]
        if len(graphs) != 1 or graphs[0].size < MIN_BYTES:
            return content, {}
        graph, stored = _without(content, graphs[0])
    except (ValueError, IndexError):
        return content, {}
    if not stored:
        return content, {}
    return b"".join([content[: graphs[0].start], *_field(_GRAPH, graph), content[graphs[0].end :]]), stored


def _without(content: memoryview, graph: _Field) -> tuple[list[bytes | memoryview], Stored]:
    """The parts of the graph, which are joined once, and what was left out."""
    parts: list[bytes | memoryview] = []
    stored: dict[int, memoryview] = {}
    number, copied = 0, graph.body
    for field in _fields(content, graph.body, graph.end):
        if not _is(field, _INITIALIZER):
            continue
        raw = _raw_data(content, field) if field.size >= MIN_BYTES else None
        if raw is not None:
            stored[number] = content[raw.body : raw.end]
            tensor = [content[field.body : raw.start], *_field(_RAW_DATA, []), content[raw.end : field.end]]
            parts += [content[copied : field.start], *_field(_INITIALIZER, tensor)]
            copied = field.end
        number += 1
    return [*parts, content[copied : graph.end]], stored


def _raw_data(content: memoryview, tensor: _Field) -> _Field | None:
    """The one field with the bytes of a tensor, where it is large."""
    found: list[_Field] = []
    for count, field in enumerate(_fields(content, tensor.body, tensor.end)):
        if count == _MAX_FIELDS:
            return None
        if _is(field, _RAW_DATA):
            found.append(field)
    return found[0] if len(found) == 1 and found[0].size >= MIN_BYTES else None


def _is(field: _Field, number: int) -> bool:
    return field.number == number and field.kind == _LENGTH_DELIMITED


def _fields(content: memoryview, at: int, end: int) -> Iterator[_Field]:
    """The fields of a message; ValueError or IndexError where it is none."""
    while at < end:
        tag, body = _varint(content, at)
        kind = tag & 7
        if kind == _VARINT:
            _, stop = _varint(content, body)
        elif kind == _LENGTH_DELIMITED:
            size, body = _varint(content, body)
            stop = body + size
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            stop = body + (8 if kind == _EIGHT_BYTES else 4)
        else:
            raise ValueError(f"a field of kind {kind}")
        if stop > end:
            raise ValueError("a field that is longer than its message")
        yield _Field(tag >> 3, kind, at, body, stop)
        at = stop


def _varint(content: memoryview, at: int) -> tuple[int, int]:
    """A number in base 128, and where it ends."""
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _field(number: int, parts: list[bytes | memoryview]) -> list[bytes | memoryview]:
    """A length-delimited field with such a body."""
    head, size = bytearray([number << 3 | _LENGTH_DELIMITED]), sum(map(len, parts))
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    return [bytes([*head, size]), *parts]
