"""Names for dynamic dimensions: equal `dim_param`s are equal symbols, nameless ones are called after their input."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import SupportsIndex

from mlirt.dialects.symbolic import FUNCTIONS, Dim, substitute, sym, symbols
from mlirt.dialects.symbolic_text import parse
from mlirt.errors import InvalidInputError

_MAX_NAME_LENGTH = 64
_ITERATION = re.compile(r"d\d+")


class DimensionNames:
    """One symbol for each dimension name of a model."""

    def __init__(self) -> None:
        self._symbols: dict[str, str] = {}

    def symbol(self, name: str) -> Dim:
        """The symbol for a dimension called `name` in the model."""
        if name not in self._symbols:
            self._symbols[name] = self._free(identifier(name))
        return sym(self._symbols[name])

    def _free(self, wanted: str) -> str:
        taken = set(self._symbols.values())
        name, count = wanted, 1
        while name in taken:
            count += 1
            name = f"{wanted}_{count}"
        return name


def is_name(text: str) -> bool:
    """Whether a dimension's text names it: exporters write ?, - or None for each length that they do not know."""
    return text != "None" and any(letter.isalnum() for letter in text)


def identifier(text: str) -> str:
    """`text` with everything but letters, digits and underscores replaced, so that it can stand in an expression.

    `d0`, `d1`, .. are what iterations are called in accesses, as functions have names there, too.
    """
    name = re.sub(r"\W+", "_", text[:_MAX_NAME_LENGTH], flags=re.ASCII).strip("_")
    name = name if name and not name[0].isdigit() else f"d{name}"
    return f"{name}_" if name in FUNCTIONS or _ITERATION.fullmatch(name) else name


def given_dims(name: str, shape: Sequence[int | str], rank: int) -> list[Dim]:
    """The dimensions that a caller asks for; raises `InvalidInputError` unless they make a shape of this rank."""
    if len(shape) != rank:
        raise InvalidInputError(f"input {name!r} has {rank} dimensions, but the shape given for it is {list(shape)}")
    return [_given_dim(name, size, shape) for size in shape]


def _given_dim(name: str, size: SupportsIndex | str, shape: Sequence[object]) -> Dim:
    if isinstance(size, str):
        try:
            dimension = parse(size)
        except ValueError as error:
            raise InvalidInputError(f"input {name!r}: {error}") from error
        return substitute(dimension, {one: sym(identifier(one)) for one in symbols(dimension)})
    number = -1 if isinstance(size, bool) or not hasattr(size, "__index__") else int(size)
    if number < 0:
        raise InvalidInputError(f"input {name!r}: {size!r} in {list(shape)} is no length; give a number or a name")
    return number
