"""Records of a plan as dataclasses whose fields say how JSON has them: the reader, the writer and the page follow.

    @dataclass(frozen=True)
    class Place:
        buffer: int = field(metadata=stored(index("buffers")))
        offset: Expression = field(metadata=stored(FORMULA, default=0))

        def check(self, scope: Scope) -> None: ...        what one field asks of another, if anything

A field without `stored` is no part of the JSON: whoever reads the record passes it. What is absent or null is the
default; one that is a function gets the scope and the fields before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from mlirt.errors import PlanError

if TYPE_CHECKING:
    from mlirt.runtime.manifest import Target, Tensor

REQUIRED: Any = object()
Given: TypeAlias = "dict[str, Any]"
_KEY = "mlirt.stored"
T = TypeVar("T")


class Fault(Exception):
    """What is wrong with a value, and where it lies in the record that is read."""

    def __init__(self, text: str, *path: str) -> None:
        super().__init__(text)
        self.path = path

    def within(self, *path: str) -> Fault:
        """The same, seen from a record around it."""
        return Fault(str(self), *path, *self.path)

    def in_plan(self) -> PlanError:
        """The error in one line, with the path of the field."""
        path = "".join(self.path).removeprefix(".")
        return PlanError(f"plan manifest: {f'plan.{path}' if len(self.path) < 2 else path}: {self}")


@dataclass
class Scope:
    """What the plan around a record has: its symbols, how many there are of what, and what has been read."""

    names: Collection[str] = frozenset()
    sizes: Collection[str] = ()
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    sections: Collection[str] = ()
    weights: Mapping[str, int] = field(default_factory=dict[str, int])
    target: Target | None = None
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    kernels: tuple[Any, ...] = ()
    depth: int = 0


@dataclass(frozen=True)
class Kind:
    """How values of a kind are read, and what the page calls them; raises `Fault` for what is none."""

    read: Callable[[Any, Scope, Given], Any]
    text: str
    has_formulas: bool = False
    """Whether symbols stand in it."""
    records: tuple[type, ...] = ()
    """The records that lie in it."""
    is_many: bool = False


@dataclass(frozen=True)
class Stored:
    """How JSON has a field."""

    kind: Kind
    key: str | None
    """Its name there, where it is another one."""
    default: Any
    only: str | None
    """The list whose records alone have it."""
    is_inline: bool
    """Whether the fields of its record stand in the record around it."""


def stored(
    kind: Kind, *, key: str | None = None, default: Any = REQUIRED, only: str | None = None, is_inline: bool = False
) -> dict[str, Stored]:
    """The metadata of a field that is part of the JSON."""
    return {_KEY: Stored(kind, key, default, only, is_inline)}


@dataclass(frozen=True)
class JsonField:
    """A field of a record as JSON has it."""

    name: str
    key: str
    kind: Kind
    default: Any
    is_inline: bool


@cache
def json_fields(record: type, role: str = "") -> tuple[JsonField, ...]:
    """The fields of a record, in the list `role` if its records differ by it."""
    found: list[JsonField] = []
    for one in fields(record):
        how: Stored | None = one.metadata.get(_KEY)
        if how is not None and how.only in (None, role):
            found.append(JsonField(one.name, how.key or one.name, how.kind, how.default, how.is_inline))
    return tuple(found)


@cache
def known_keys(record: type, role: str = "") -> frozenset[str]:
    """The keys that JSON may have for a record."""
    own = json_fields(record, role)
    inner = [known_keys(one.kind.records[0]) for one in own if one.is_inline]
    return frozenset(one.key for one in own if not one.is_inline).union(*inner)


def as_table(raw: object) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(raw, dict):
        raise Fault(f"expected an object, got {type(raw).__name__}")
    return cast("dict[str, Any]", raw)


def check_keys(raw: Mapping[str, object], known: Collection[str]) -> None:
    """Raise `Fault` for a field that there is not."""
    for key in sorted(raw.keys() - known):
        name = key[:40]
        raise Fault("is no field of this object", f".{name if name.isprintable() else ascii(name)}")


def read_record(record: type[T], raw: object, scope: Scope, role: str = "", **more: object) -> T:
    """The record of a JSON object; `more` are its fields that are no part of it."""
    table = as_table(raw)
    known = known_keys(record, role)
    if not table.keys() <= known:
        check_keys(table, known)
    return _from_table(record, table, scope, role, more)


def read_inline(record: type[T], table: Mapping[str, Any], scope: Scope, **more: object) -> T:
    """A record whose fields stand in the JSON object of the one around it, which looks for unknown ones."""
    return _from_table(record, table, scope, "", more)


def _from_table(record: type[T], table: Mapping[str, Any], scope: Scope, role: str, given: Given) -> T:
    for one in json_fields(record, role):
        given[one.name] = read_field(one, table, scope, given)
    made = record(**given)
    check = getattr(made, "check", None)
    if check is not None:
        check(scope)
    return made


def read_field(one: JsonField, table: Mapping[str, Any], scope: Scope, given: Given) -> Any:
    """The value of one field of a JSON object, after those that were `given`."""
    if one.is_inline:
        return one.kind.read(table, scope, given)
    value = table.get(one.key)
    if value is None:
        default = one.default
        if default is REQUIRED:
            raise Fault("is missing", f".{one.key}")
        return default(scope, given) if callable(default) else default
    try:
        return one.kind.read(value, scope, given)
    except Fault as fault:
        raise fault.within(f".{one.key}") from fault.__cause__


def written(
    record: type, role: str = "", later: Collection[str] = (), *, formula: Callable[[Any], object], **values: Any
) -> dict[str, object]:
    """A JSON object with these fields of a record, of which `formula` writes those that have symbols.

    What is not given is left to its default, or comes `later`. Raises `TypeError` for a field that there is not, and
    where one is missing.
    """
    own = {one.name: one for one in json_fields(record, role) if not one.is_inline}
    strange = values.keys() - own.keys()
    missing = [one.name for one in own.values() if one.default is REQUIRED and one.name not in {*values, *later}]
    if strange or missing:
        raise TypeError(f"{record.__name__}: it has no {sorted(strange)}, and needs {missing}")
    return {own[name].key: _written(own[name].kind, value, formula) for name, value in values.items()}


def _written(kind: Kind, value: Any, formula: Callable[[Any], object]) -> object:
    if value is None or not kind.has_formulas:
        return value
    return [formula(one) for one in value] if kind.is_many else formula(value)


def records_of(record: type) -> Iterator[type]:
    """A record and all those that lie in it, each once, in the order of their fields."""
    found = {record: None}
    queue = [record]
    while queue:
        for role in ("", "inputs", "outputs"):
            for one in json_fields(queue[0], role):
                fresh = [inner for inner in one.kind.records if inner not in found]
                found |= dict.fromkeys(fresh)
                queue += fresh
        queue.pop(0)
    return iter(found)


@cache
def formula_keys(record: type) -> frozenset[str]:
    """The keys under which formulas stand, in a record and in those that lie in it."""
    return frozenset(
        one.key for each in records_of(record) for role in ("", "inputs") for one in json_fields(each, role)
        if one.kind.has_formulas
    )  # fmt: skip
