"""The kinds of values in the records of a plan: texts, numbers in ranges, formulas, indices, lists, other records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from mlirt.runtime.expressions import Expression, ExpressionError, parse
from mlirt.runtime.record_schema import Fault, Given, Kind, Scope, as_table, read_record

MAX_ITEMS = 1 << 20
MAX_RANK = 64
_MAX_TEXT_LENGTH = 65536


def _text(value: Any, scope: Scope, given: Given) -> str:
    if not isinstance(value, str) or len(value) > _MAX_TEXT_LENGTH:
        raise Fault(f"expected a text, got {type(value).__name__}")
    return value


def _flag(value: Any, scope: Scope, given: Given) -> bool:
    if not isinstance(value, bool):
        raise Fault(f"expected true or false, got {str(value)[:40]}")
    return value


def _formula(value: Any, scope: Scope, given: Given) -> Expression:
    if type(value) is str and value in scope.names:
        return value
    try:
        return parse(value, scope.names)
    except ExpressionError as error:
        raise Fault(str(error)) from error


def _table(value: Any, scope: Scope, given: Given) -> dict[str, Any]:
    return as_table(value)


TEXT = Kind(_text, "text")
FLAG = Kind(_flag, "true or false")
FORMULA = Kind(_formula, "formula", has_formulas=True)
TABLE = Kind(_table, "object")


def is_whole(value: object) -> bool:
    """Whether this is a whole number; true and false are none in JSON."""
    return isinstance(value, int) and not isinstance(value, bool)


def whole(low: int, high: int) -> Kind:
    """A whole number from `low` to `high`."""

    def read(value: Any, scope: Scope, given: Given) -> int:
        return in_range(value, low, high)

    return Kind(read, f"{low} to {_power(high)}")


def in_range(value: Any, low: int, high: int) -> int:
    """A whole number from `low` to `high`."""
    if not is_whole(value) or not low <= value <= high:
        raise Fault(f"expected a whole number in [{low}, {high}], got {str(value)[:40]}")
    return value


def _power(number: int) -> str:
    return f"2^{number.bit_length() - 1}" if number > 4096 and not number & (number - 1) else str(number)


def index(what: str) -> Kind:
    """The place of one of the plan's inputs, buffers, .."""

    def read(value: Any, scope: Scope, given: Given) -> int:
        count = scope.counts[what]
        if not is_whole(value) or not 0 <= value < count:
            raise Fault(f"{str(value)[:40]} is no index of the {count} {what}")
        return value

    return Kind(read, f"index of {what}")


def one_of(*words: str, fault: Callable[[str], str] | None = None) -> Kind:
    """One of some words; `fault` says what is wrong with another one."""
    listed = [repr(word) for word in words]
    wanted = " or ".join([", ".join(listed[:-1]), listed[-1]])

    def read(value: Any, scope: Scope, given: Given) -> str:
        if _text(value, scope, given) not in words:
            raise Fault(fault(value[:40]) if fault is not None else f"expected {wanted}, got {value[:40]!r}")
        return value

    return Kind(read, wanted if len(words) <= 8 else "one of a list")


def items(value: Any, limit: int) -> list[Any]:
    """A list of at most `limit` items."""
    if not isinstance(value, list):
        raise Fault(f"expected a list, got {type(value).__name__}")
    found = cast("list[Any]", value)
    if len(found) > limit:
        raise Fault(f"has {len(found)} items, more than {limit}")
    return found


def texts(limit: int = MAX_ITEMS) -> Kind:
    """A list of texts."""

    def read(value: Any, scope: Scope, given: Given) -> tuple[str, ...]:
        found = items(value, limit)
        if not all(isinstance(item, str) for item in found):
            raise Fault("expected a list of texts")
        return tuple(found)

    return Kind(read, "texts")


def formulas(limit: int = MAX_RANK) -> Kind:
    """A list of formulas."""

    def read(value: Any, scope: Scope, given: Given) -> tuple[Expression, ...]:
        return tuple([_formula(item, scope, given) for item in items(value, limit)])

    return Kind(read, f"formulas, at most {limit}", has_formulas=True, is_many=True)


def numbers(low: int, high: int, limit: int, fault: str = "") -> Kind:
    """A list of whole numbers from `low` to `high`."""
    text = fault or f"expected whole numbers in [{low}, {high}]"

    def read(value: Any, scope: Scope, given: Given) -> tuple[int, ...]:
        found = items(value, limit)
        if not all(is_whole(item) and low <= item <= high for item in found):
            raise Fault(text)
        return tuple(found)

    return Kind(read, f"numbers from {low} to {_power(high)}, at most {limit}")


def exactly(count: int, least: int, most: int) -> Kind:
    """`count` whole numbers from `least` on."""
    fault = f"expected {'two' if count == 2 else count} whole numbers from {least} on"

    def read(value: Any, scope: Scope, given: Given) -> tuple[int, ...]:
        found = items(value, count)
        if len(found) != count or not all(is_whole(item) and least <= item <= most for item in found):
            raise Fault(fault)
        return tuple(found)

    return Kind(read, f"{count} numbers from {least} on")


def section(limit: int = 40) -> Kind:
    """The name of a section of the plan file."""

    def read(value: Any, scope: Scope, given: Given) -> str:
        if not isinstance(value, str) or value not in scope.sections:
            raise Fault(f"there is no section {str(value)[:limit]!r}")
        return value

    return Kind(read, "section")


def sections_by_architecture() -> Kind:
    """The names of sections by the architecture that they are for."""

    def read(value: Any, scope: Scope, given: Given) -> dict[str, str]:
        found = as_table(value)
        for name in found.values():
            _SECTION.read(name, scope, given)
        return found

    return Kind(read, "{architecture: section}")


_SECTION = section()


def nested(record: type[Any], **extra: str) -> Kind:
    """A record in a record; `extra` fields of it are those of the one around it, by name."""

    def read(value: Any, scope: Scope, given: Given) -> Any:
        return read_record(record, value, scope, **{name: given[source] for name, source in extra.items()})

    return Kind(read, record.__name__, records=(record,))


def many(record: type[Any], role: str = "", limit: int = MAX_ITEMS) -> Kind:
    """A list of records."""

    def read(value: Any, scope: Scope, given: Given) -> tuple[Any, ...]:
        return tuple(each(items(value, limit), lambda item: read_record(record, item, scope, role)))

    return Kind(read, f"[{record.__name__}]", records=(record,))


def each(found: list[Any], read: Callable[[Any], Any]) -> list[Any]:
    """What `read` makes of the items of a list; a fault tells which one has it."""
    made: list[Any] = []
    try:
        for item in found:
            made.append(read(item))
    except Fault as fault:
        raise fault.within(f"[{len(made)}]") from fault.__cause__
    return made
