"""Options of passes: a default, and which values are legal; what help says of them follows from the same."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from xdsl.passes import ModulePass

T = TypeVar("T")
_MINIMUM, _MAXIMUM, _ONE_OF = "mlirt.at_least", "mlirt.at_most", "mlirt.one_of"


def option(default: T, *, at_least: float | None = None, at_most: float | None = None, one_of: Sequence[T] = ()) -> T:
    """A field of a pass with a default, whose values are within a range or among a few.

    `max_ops: int = option(96, at_least=1)`
    """
    limits = {_MINIMUM: at_least, _MAXIMUM: at_most, _ONE_OF: tuple(one_of)}
    given = {key: limit for key, limit in limits.items() if limit not in (None, ())}
    found: Any = field(default=default, metadata=given)
    return found


@dataclass(frozen=True)
class OptionInfo:
    """What help says of one option."""

    name: str
    type: str
    default: str | None
    values: str
    """Which values are legal, such as `at least 1`; empty for all of the type."""

    def __str__(self) -> str:
        default = "" if self.default is None else f" = {self.default}"
        return f"{self.name}: {self.type}{default}" + (f" ({self.values})" if self.values else "")


def option_infos(pass_class: type[ModulePass]) -> Iterator[OptionInfo]:
    """The options of a pass in order, as users write them."""
    hints = get_type_hints(pass_class)
    for one in fields(pass_class):
        if one.init:
            default = None if one.default is MISSING else spelt_value(one.default)
            yield OptionInfo(spelt(one.name), _type_text(hints[one.name]), default, legal_values(one))


def refusal(pass_class: type[ModulePass], name: str, value: Any) -> str | None:
    """What is wrong with a value of an option, as far as its range says; None where nothing is."""
    (one,) = (one for one in fields(pass_class) if one.name == name)
    items = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
    for item in items:
        choices = one.metadata.get(_ONE_OF, ())
        low, high = one.metadata.get(_MINIMUM), one.metadata.get(_MAXIMUM)
        # What is no number is in no range, so that both are asked whether it is inside.
        outside = not ((low is None or item >= low) and (high is None or item <= high))
        if outside or (choices and item not in choices):
            return f"option {spelt(name)} is {spelt_value(item)}, expected {legal_values(one)}"
    return None


def legal_values(one: Field[Any]) -> str:
    """The range of an option in words."""
    low, high, choices = (one.metadata.get(key) for key in (_MINIMUM, _MAXIMUM, _ONE_OF))
    if choices:
        return f"one of {', '.join(map(spelt_value, choices))}"
    if low is not None and high is not None:
        return f"{low} to {high}"
    return f"at least {low}" if low is not None else f"at most {high}" if high is not None else ""


def spelt(name: str) -> str:
    """An option as users write it."""
    return name.replace("_", "-")


def spelt_value(value: object) -> str:
    """A value as users write it."""
    if isinstance(value, tuple):
        return ",".join(map(spelt_value, cast("tuple[object, ...]", value))) or "none"
    if isinstance(value, bool):
        return str(value).lower()
    return '""' if value == "" else str(value)


def _type_text(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return "|".join(map(spelt_value, parts))
    if origin in (Union, types.UnionType):
        return " or ".join(_type_text(part) for part in parts if part is not type(None))
    if origin is tuple:
        return f"{_type_text(parts[0])},.."
    return str(getattr(hint, "__name__", hint))
