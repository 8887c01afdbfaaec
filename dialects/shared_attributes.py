"""Attributes that most ops have, each made once: to make one takes longer than to find it, as does comparing two."""

from __future__ import annotations

from functools import cache, lru_cache

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, IntegerType, i64


@lru_cache(maxsize=1 << 14)
def integer(value: int) -> IntegerAttr[IntegerType]:
    """The property `value : i64`."""
    return IntegerAttr(value, i64)


@cache
def boolean(value: bool) -> BoolAttr:
    """The property `true` or `false`."""
    return BoolAttr.from_bool(value)
