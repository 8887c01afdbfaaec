"""Lists of integers as properties: strides, pads, axes, permutations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, i64

_VALUES = "_values"
"""Where a property keeps its values once they were asked for."""


def integer_list(values: Sequence[int]) -> DenseArrayBase[IntegerType]:
    """The property `array<i64: ...>` with these values."""
    return _shared(tuple(values))


@lru_cache(maxsize=4096)
def _shared(values: tuple[int, ...]) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i64, values)


def integers(attribute: DenseArrayBase[IntegerType]) -> tuple[int, ...]:
    """The values of an `array<i64: ...>` property."""
    known = vars(attribute).get(_VALUES)  # they are asked for often, and never change
    if known is None:
        known = vars(attribute)[_VALUES] = attribute.get_values()
    return known


def integers_or(attribute: DenseArrayBase[IntegerType] | None, default: int, count: int) -> tuple[int, ...]:
    """The values of a property that may be absent: then `count` times `default`."""
    return (default,) * count if attribute is None else integers(attribute)
