"""Proves, when shapes are bound, that no launch can leave its buffers: the contracts that come with a plan's kernels.

A contract belongs to machine code and was read off the kernel's IR by the compiler. It computes from the numbers that a
launch passes which elements each pointer can be used for, so that a launch whose numbers do not fit its buffers is
refused, whatever its manifest says. The section `extents` of a plan is JSON:
    {"kernels": {symbol: [Contract]}, "sealed": [SHA-256 in hex]}
    Contract: {"objects": [section], "args": [type], "block": [x, y, z], "shared_bytes", "cluster", "signed": [place],
               "numbers": [[operation, operand, ...]], "conditions": [[number, guard, ...]],
               "extents": [[place | null, bytes | null, bytes of an element, low, high, guard, ...]],
               "unproved": [place]}
`numbers` is a straight-line program: an operand is the place of an earlier instruction, of an integer argument or an
axis of the grid, or a constant; 0 divides as 1 does, as it does in kernels. Arguments among the `constants` have that
value, and others that are not `signed` are at least 0. A condition must be at least 0, and an extent within its buffer
(or the kernel's own memory of so many bytes), unless one of its guards is less than 0: then nothing is executed there.
No instruction gives a number of more than 62 bits, so that the machine's sums do not wrap.
Each contract of a kernel is true; a launch must keep one of them, which are for other `constants`.
A sealed launch, whose numbers have a digest in `sealed`, is as the compiler wrote it; others must be proved.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from mlirt.errors import PlanError
from mlirt.runtime.json_record import JsonRecord

SECTION = "extents"
_FIELDS = (
    *(
        "objects",
        "args",
        "block",
        "shared_bytes",
        "cluster",
        "signed",
        "constants",
        "numbers",
        "conditions",
        "extents",
        "unproved",
    ),
)
MAX_NUMBER = 1 << 62
_MAX_TERMS = 1 << 20
_OPERANDS = {"const": 1, "arg": 1, "grid": 1, "+": 2, "*": 2, "//": 2, "%": 2, "max": 2, "min": 2, "if": 3}
_GIVEN = ("const", "arg", "grid")

Instruction: TypeAlias = "tuple[str, int, int, int]"


@dataclass(frozen=True)
class Extent:
    """Elements `low` to `high` (numbers of instructions) of the argument `place`, or of the kernel's own memory."""

    place: int | None
    bytes: int
    width: int
    low: int
    high: int
    guards: tuple[int, ...]


@dataclass(frozen=True)
class Contract:
    """What one kernel touches."""

    objects: frozenset[str]
    args: tuple[str, ...]
    block: tuple[int, ...]
    shared_bytes: int
    cluster: int
    signed: frozenset[int]
    constants: Mapping[int, int]
    numbers: tuple[Instruction, ...]
    conditions: tuple[tuple[int, ...], ...]
    extents: tuple[Extent, ...]
    unproved: frozenset[int]
    _known: dict[tuple[int, ...], "Extents | str"] = field(default_factory=dict[tuple[int, ...], "Extents | str"])

    def extents_of(self, args: Sequence[object], grid: Sequence[int]) -> "Extents | str":
        """By place the bytes (first, past the last) that a launch touches from its pointers on; or what is wrong."""
        given = tuple(
            arg if kind in ("i64", "i32") and isinstance(arg, int) else 0
            for arg, kind in zip(args, self.args, strict=True)
        )
        key = (*given, *grid)
        found = self._known.get(key)
        if found is None:
            found = self._evaluated(given, grid)
            if len(self._known) >= 64:
                self._known.clear()  # which another thread may do as well, at any time
            self._known[key] = found
        return found

    def _evaluated(self, given: Sequence[int], grid: Sequence[int]) -> "Extents | str":
        for place, (value, kind) in enumerate(zip(given, self.args, strict=True)):
            if self.constants.get(place, value) != value:
                return f"argument {place} is {value}, its code is for {self.constants[place]}"
            if value < 0 and place not in self.constants and kind in ("i64", "i32") and place not in self.signed:
                return f"argument {place} is {value}, which must not be negative"
        try:
            values = _run(self.numbers, given, grid)
        except OverflowError:
            return "its numbers are too large"
        for number, *guards in self.conditions:
            if values[number] < 0 and all(values[guard] >= 0 for guard in guards):
                return "its numbers contradict each other"
        found: dict[int, tuple[int, int]] = {}
        for extent in self.extents:
            low, high = values[extent.low], values[extent.high]
            if high < low or any(values[guard] < 0 for guard in extent.guards):
                continue
            start, end = low * extent.width, (high + 1) * extent.width
            if extent.place is None:
                if start < 0 or end > extent.bytes:
                    return f"it reaches bytes {start} to {end} of its own memory of {extent.bytes} bytes"
                continue
            before = found.get(extent.place, (start, end))
            found[extent.place] = min(start, before[0]), max(end, before[1])
        return found


Extents: TypeAlias = "Mapping[int, tuple[int, int]]"


def _run(code: Sequence[Instruction], given: Sequence[int], grid: Sequence[int]) -> list[int]:
    """The value of each instruction; raises OverflowError where one needs more than 62 bits."""
    values: list[int] = []
    for operation, a, b, c in code:  # the most frequent ones first: a plan has thousands of them
        if operation == "*":
            value = values[a] * values[b]
            if not -MAX_NUMBER < value < MAX_NUMBER:
                raise OverflowError
        elif operation == "+":
            value = values[a] + values[b]
        elif operation == "min":
            value = values[a] if values[a] < values[b] else values[b]
        elif operation == "max":
            value = values[a] if values[a] > values[b] else values[b]
        elif operation == "if":
            value = values[b] if values[a] >= 0 else values[c]
        elif operation == "const":
            value = a
        elif operation == "//":
            value = values[a] // (values[b] or 1)
        elif operation == "arg":
            value = given[a]
        elif operation == "%":
            value = values[a] % (values[b] or 1)
        else:
            value = grid[a]
        values.append(value)
    if values and not -MAX_NUMBER < min(values) <= max(values) < MAX_NUMBER:
        raise OverflowError
    return values


@dataclass(frozen=True)
class Contracts:
    """The contracts of a plan's kernels, by symbol, and the digests of launches that have none."""

    kernels: Mapping[str, tuple[Contract, ...]]
    sealed: frozenset[str]


def read_contracts(section: bytes) -> Contracts:
    """The section of a plan; a `PlanError` names what is wrong in it."""
    try:
        value: object = json.loads(section)
    except (ValueError, RecursionError) as error:
        raise PlanError("plan section 'extents' is no JSON") from error
    top = JsonRecord(value, "extents", ("kernels", "sealed"))
    table = top.table("kernels")
    kernels = JsonRecord(table, "extents.kernels", table)
    found = {symbol: tuple(_contract(one, symbol) for one in kernels.items(symbol, _MAX_TERMS)) for symbol in table}
    return Contracts(found, frozenset(top.texts("sealed", _MAX_TERMS)))


def _contract(raw: object, symbol: str) -> Contract:
    record = JsonRecord(raw, f"extents[{symbol[:80]!r}]", _FIELDS)
    args = record.texts("args", 1024)
    numbers = tuple(_instruction(record, i, one, args) for i, one in enumerate(record.items("numbers", _MAX_TERMS)))
    count = len(numbers)
    conditions = tuple(_integers(record, "conditions", one, count) for one in record.items("conditions", _MAX_TERMS))
    if any(not condition for condition in conditions):
        raise record.error("conditions", "one is empty")
    return Contract(
        objects=frozenset(record.texts("objects", 1024)),
        args=args,
        block=_integers(record, "block", record.items("block", 3), 1 << 16),
        shared_bytes=record.integer("shared_bytes", 0, 1 << 31),
        cluster=record.integer("cluster", 1, 1 << 10),
        signed=frozenset(_integers(record, "signed", record.items("signed", 1024), len(args))),
        constants=dict(_constant(record, one, args) for one in record.items("constants", 1024)),
        numbers=numbers,
        conditions=conditions,
        extents=tuple(_extent(record, one, args, count) for one in record.items("extents", _MAX_TERMS)),
        unproved=frozenset(_integers(record, "unproved", record.items("unproved", 1024), len(args))),
    )


def _integers(record: JsonRecord, key: str, raw: object, end: int) -> tuple[int, ...]:
    items = cast("list[object]", raw) if isinstance(raw, list | tuple) else [None]
    found = tuple(one for one in items if isinstance(one, int) and not isinstance(one, bool) and 0 <= one < end)
    if len(found) != len(items):
        raise record.error(key, f"expected whole numbers from 0 to {end - 1}")
    return found


def _constant(record: JsonRecord, raw: object, args: Sequence[str]) -> tuple[int, int]:
    items = cast("list[object]", raw) if isinstance(raw, list) else []
    match items:
        case [int(place), int(value)] if 0 <= place < len(args) and args[place] in ("i64", "i32"):
            return place, value
        case _:
            raise record.error("constants", "expected the place of an integer argument and its value")


def _instruction(record: JsonRecord, place: int, raw: object, args: Sequence[str]) -> Instruction:
    items = cast("list[object]", raw) if isinstance(raw, list) else []
    operation = str(items[0]) if items else ""
    operands = [one for one in items[1:] if isinstance(one, int) and not isinstance(one, bool)]
    if operation not in _OPERANDS or len(operands) != _OPERANDS[operation] or len(operands) != len(items) - 1:
        raise record.error("numbers", f"instruction {place} makes no sense")
    if operation == "const":
        fits = abs(operands[0]) < MAX_NUMBER
    elif operation == "arg":
        fits = 0 <= operands[0] < len(args) and args[operands[0]] in ("i64", "i32")
    else:
        fits = all(0 <= one < (3 if operation == "grid" else place) for one in operands)
    if not fits:
        raise record.error("numbers", f"an operand of instruction {place} is out of range")
    a, b, c = [*operands, 0, 0][:3]
    return operation, a, b, c


def _extent(record: JsonRecord, raw: object, args: Sequence[str], count: int) -> Extent:
    items = cast("list[object]", raw) if isinstance(raw, list) else []
    if len(items) < 5 or (items[0] is None) == (items[1] is None):
        raise record.error("extents", "expected an argument or bytes, a width, a low and a high number, and guards")
    place = None if items[0] is None else _integers(record, "extents", [items[0]], len(args))[0]
    if place is not None and args[place] != "ptr":
        raise record.error("extents", f"argument {place} is no pointer")
    size = 0 if items[1] is None else _integers(record, "extents", [items[1]], MAX_NUMBER)[0]
    (width,) = _integers(record, "extents", [items[2]], 1 << 10)
    low, high, *guards = _integers(record, "extents", items[3:], count)
    return Extent(place, size, width, low, high, tuple(guards))


class Seals:
    """The digests of the launches of one manifest, in its JSON form.

    Each covers all numbers of its launch: what it passes, its grid, its buffers, and what these follow from, the
    requirements and the program included, whose steps define the sizes that only a run knows.
    """

    def __init__(self, manifest: Mapping[str, object]) -> None:
        self._launches, self._buffers, self._kernels = (
            cast("list[dict[str, object]]", manifest[k]) for k in ("launches", "buffers", "kernels")
        )
        self._about = _digest([manifest.get(key, []) for key in ("symbols", "sizes", "requirements", "program")])

    def of(self, launch: int) -> str:
        """The digest of a launch, by its number."""
        record = self._launches[launch]
        kernel = self._kernels[cast("int", record["kernel"])]
        described = {key: value for key, value in kernel.items() if key != "written"}
        used: dict[int, object] = {}
        todo = [place for place in map(_buffer_of, cast("list[object]", record["args"])) if place is not None]
        while todo:
            place = todo.pop()
            buffer = self._buffers[place]
            used[place] = [buffer.get(key) for key in ("kind", "bytes", "view_of", "view_offset", "weight")]
            source = buffer.get("view_of")
            if isinstance(source, int) and source not in used:
                todo.append(source)
        return _digest([described, record["args"], record.get("grid", [1, 1, 1]), sorted(used.items()), self._about])


def _digest(record: object) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _buffer_of(argument: object) -> int | None:
    record = cast("dict[str, object]", argument)
    inner = cast("dict[str, object]", record.get("map", record))
    place = inner.get("buffer")
    return place if isinstance(place, int) else None
