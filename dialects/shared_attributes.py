"""Attributes that most ops have, each made once: to make one takes longer than to find it, as does comparing two."""

from __future__ import annotations

from functools import cache, lru_cache

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, IntegerType, i64


@lru_cache(maxsize=1 << 14)
def integer(value: int, type_: IntegerType = i64) -> IntegerAttr[IntegerType]:
    """The property `value : i64`, or of another type."""
    return IntegerAttr(value, type_)


@cache
def boolean(value: bool) -> BoolAttr:
    """The property `true` or `false`."""
    return BoolAttr.from_bool(value)
