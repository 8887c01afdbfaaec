"""What the types of a kernel's integers hold."""

from __future__ import annotations

from functools import cache

from xdsl.dialects.builtin import IndexType, IntegerType, Signedness
from xdsl.ir import Attribute

WORD = 64
"""Bits of an index."""


def is_integer(type_: Attribute) -> bool:
    """Whether values of a type are whole numbers."""
    return isinstance(type_, IndexType | IntegerType)


def bits_of(type_: Attribute) -> int:
    """How many bits a type has; those of an index for what is no integer."""
    return type_.bitwidth if isinstance(type_, IntegerType) else WORD


def largest(type_: Attribute) -> int:
    """The largest number of a signed type."""
    return 2 ** (bits_of(type_) - 1) - 1


def range_of(type_: Attribute) -> tuple[int, int] | None:
    """The least and the largest number of a type; None where it is wide, or does not say whether it has a sign."""
    return _range_of(type_) if bits_of(type_) < WORD else None


@cache
def _range_of(type_: Attribute) -> tuple[int, int] | None:
    bits = bits_of(type_)
    if bits == 1 or type_ == IntegerType(bits, Signedness.UNSIGNED):
        return 0, 2**bits - 1
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if type_ == IntegerType(bits, Signedness.SIGNED) else None
