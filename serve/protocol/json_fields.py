"""Reads fields of JSON that a stranger has sent: each is of the expected kind, or the error says what came."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from mlirt.errors import InvalidInputError

Fields = Mapping[str, Any]
_MAX_SHOWN = 60


def shown(value: object) -> str:
    """A value in a message: not too long, and without what terminals obey."""
    text = json.dumps(value, default=str)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}.."


def read_json(body: bytes, what: str) -> Fields:
    """A JSON object; nothing is read as one."""
    try:
        found: object = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{what} is no JSON: {error}") from None
    return as_fields(found, what)


def as_fields(value: object, what: str) -> Fields:
    """A JSON object."""
    if not isinstance(value, dict):
        raise InvalidInputError(f"{what} is {shown(value)}; expected a JSON object")
    return cast("Fields", value)


def list_field(fields: Fields, name: str, what: str) -> list[Any]:
    """A list; an empty one where there is none."""
    value: object = fields.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInputError(f"{name} of {what} is {shown(value)}; expected a list")
    return cast("list[Any]", value)


def text_field(fields: Fields, name: str, what: str) -> str:
    """A text that must be there."""
    value: object = fields.get(name)
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} of {what} is {shown(value)}; expected a text")
    return value


def count_of(value: object, what: str) -> int:
    """A whole number from 0 on."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidInputError(f"{what} is {shown(value)}; expected a whole number from 0 on")
    return value


def flag_of(value: object, what: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise InvalidInputError(f"{what} is {shown(value)}; expected true or false")
    return value
