"""Conditions on properties, numbers and types: a value to be equal to, or a test with words for what it asks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, StringAttr, UnitAttr, i1
from xdsl.dialects.utils import EnumAttribute

from mlirt.dialects.dims_attr import DimsAttr


@dataclass(frozen=True)
class Condition:
    """A test of a plain value; `text` completes "it is 3, not ..."."""

    test: Callable[[Any], bool]
    text: str


def where(test: Callable[[Any], bool], text: str) -> Condition:
    """What `test` holds of; `text` says in the reason what was asked for."""
    return Condition(test, text)


def either(*values: object) -> Condition:
    """One of several plain values."""
    wanted = [_plain_sequence(value) for value in values]
    return Condition(lambda found: found in wanted, " or ".join(map(str, values)))


def near(number: float, within: float = 1e-3) -> Condition:
    """A number that differs from `number` by at most its `within`-th part; by at most `within` where that is 0."""
    bound = within * abs(number) if number else within
    return Condition(lambda found: found is not None and abs(found - number) <= bound, f"near {number:g}")


def positive() -> Condition:
    """A finite number above 0."""
    return Condition(lambda found: found is not None and 0 < found < math.inf, "a positive number")


def condition(wanted: object) -> Condition:
    """The condition that a plain value stands for: to be equal to it."""
    if isinstance(wanted, Condition):
        return wanted
    value = _plain_sequence(wanted)
    return Condition(lambda found: found == value, "absent" if wanted is None else str(wanted))


def _plain_sequence(value: object) -> object:
    return tuple(cast("list[object]", value)) if isinstance(value, list) else plain(value)


def plain(value: object) -> object:
    """A property as Python has it: words, numbers, truth values and tuples of them; None where it is absent."""
    return _reading(type(value))(value)


@cache
def _reading(kind: type) -> Callable[[Any], object]:
    """How attributes of a class are read; asked once for each class."""
    return next((reading for of, reading in _READINGS.items() if issubclass(kind, of)), _as_it_is)


def _as_it_is(value: object) -> object:
    return value


def _integer(value: Any) -> object:
    return bool(value.value.data) if value.type == i1 else value.value.data


_READINGS: dict[type, Callable[[Any], object]] = {
    EnumAttribute: lambda value: value.data,
    StringAttr: lambda value: value.data,
    IntegerAttr: _integer,
    FloatAttr: lambda value: value.value.data,
    DimsAttr: lambda value: tuple(value.dims()),
    DenseArrayBase: lambda value: tuple(value.get_values()),
    UnitAttr: lambda value: True,
}


def spelt(value: object) -> str:
    """A plain value in a reason."""
    if value is None:
        return "absent"
    return f"{value:g}" if isinstance(value, float) else str(value)
