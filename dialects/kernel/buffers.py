"""The types of buffers and of fragments, and where buffers lie."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects.builtin import (
    MemRefType,
    StringAttr,
    VectorType,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

Fragment: TypeAlias = VectorType[Attribute]
Memory: TypeAlias = MemRefType[Attribute]

SHARED = StringAttr("shared")


def memory(value: SSAValue) -> Memory:
    """The memref type of a buffer."""
    type_ = value.type
    assert isa(type_, Memory)
    return type_


def fragment(value: SSAValue) -> Fragment:
    """The vector type of a fragment."""
    type_ = value.type
    assert isa(type_, Fragment)
    return type_


def length(value: SSAValue) -> int:
    """How many elements a fragment has."""
    return fragment(value).get_shape()[0]


def is_shared(value: SSAValue) -> bool:
    """Whether a buffer lies in shared memory."""
    return memory(value).memory_space == SHARED
