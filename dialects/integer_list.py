"""Lists of integers as properties: strides, pads, axes, permutations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, i64


def integer_list(values: Sequence[int]) -> DenseArrayBase[IntegerType]:
    """The property `array<i64: ...>` with these values."""
    return DenseArrayBase.from_list(i64, list(values))


def integers(attribute: DenseArrayBase[IntegerType]) -> tuple[int, ...]:
    """The values of an `array<i64: ...>` property."""
    return attribute.get_values()


def integers_or(attribute: DenseArrayBase[IntegerType] | None, default: int, count: int) -> tuple[int, ...]:
    """The values of a property that may be absent: then `count` times `default`."""
    return (default,) * count if attribute is None else integers(attribute)
