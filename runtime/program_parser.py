"""Validates the `program` of a plan: every launch is in it once, in order, and all else refers to what exists."""

from collections.abc import Collection

from mlirt.runtime.json_record import JsonRecord
from mlirt.runtime.program import (
    RELATIONS,
    Branch,
    LengthRequirement,
    Loop,
    Place,
    Program,
    Requirement,
    SizeCheck,
    Step,
    launches,
)

_MANY = 1 << 20
_MAX_DEPTH = 64
LENGTH_FIELDS = ("layer", "relation", "left", "right", "where", "fault")
_KINDS: dict[str, tuple[str, ...]] = {
    "if": ("if", "then", "else"),
    "while": ("while", "before", "body"),
    "size": ("size", "word", "value"),
    "require": ("require", "message"),
    "layer": LENGTH_FIELDS,
}
_ANY = tuple(field for fields in _KINDS.values() for field in fields)


def parse_program(
    top: JsonRecord, launch_count: int, buffer_count: int, names: Collection[str], sizes: Collection[str]
) -> Program:
    """The field `program`; where it is absent the launches run one after the other."""
    if top.get("program", None) is None:
        return tuple(range(launch_count))
    program = _Reader(buffer_count, names, sizes).steps(top, "program", 0)
    if list(launches(program)) != list(range(launch_count)):
        raise top.error("program", f"expected each of the {launch_count} launches once, in order")
    return program


def parse_length_requirement(record: JsonRecord, names: Collection[str]) -> LengthRequirement:
    """A requirement on lengths, as it stands in the program and in front of it."""
    relation = record.text("relation")
    if relation not in RELATIONS:
        raise record.error("relation", f"{relation[:40]!r} is none of {', '.join(RELATIONS)}")
    left, right, where = (record.formula(key, names) for key in ("left", "right", "where"))
    return LengthRequirement(record.text("layer"), relation, left, right, where, record.text("fault"))


class _Reader:
    def __init__(self, buffer_count: int, names: Collection[str], sizes: Collection[str]) -> None:
        self.buffer_count, self.names, self.sizes = buffer_count, names, sizes

    def steps(self, record: JsonRecord, key: str, depth: int) -> Program:
        if depth > _MAX_DEPTH:
            raise record.error(key, f"is nested deeper than {_MAX_DEPTH}")
        where = f"{record.where}.{key}"
        return tuple(self._step(raw, f"{where}[{i}]", depth) for i, raw in enumerate(record.items(key, _MANY, [])))

    def _step(self, raw: object, where: str, depth: int) -> Step:
        if isinstance(raw, int) and not isinstance(raw, bool):
            return raw
        found = JsonRecord(raw, where, _ANY)
        kind = next((kind for kind in _KINDS if found.get(kind, None) is not None), "if")
        record = JsonRecord(raw, where, _KINDS[kind])
        if kind == "size":
            return self._size(record)
        if kind == "layer":
            return parse_length_requirement(record, self.names)
        condition = self._place(record, kind)
        if kind == "require":
            return Requirement(condition, record.text("message"))
        first, second = (self.steps(record, key, depth + 1) for key in _KINDS[kind][1:])
        return Branch(condition, first, second) if kind == "if" else Loop(condition, first, second)

    def _size(self, record: JsonRecord) -> SizeCheck:
        symbol = record.text("size")
        if symbol not in self.sizes:
            raise record.error("size", f"{symbol[:40]!r} is none of the plan's sizes")
        word = None if record.get("word", None) is None else self._place(record, "word")
        return SizeCheck(symbol, word, record.formula("value", self.names, 0 if word is not None else None))

    def _place(self, record: JsonRecord, key: str) -> Place:
        inner = JsonRecord(record.get(key), f"{record.where}.{key}", ("buffer", "offset"))
        return Place(inner.index("buffer", self.buffer_count, "buffers"), inner.formula("offset", self.names, 0))
