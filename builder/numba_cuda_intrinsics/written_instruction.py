"""A line of PTX in generated source as a word: instructions whose definition has all that there is to say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import (
    I8,
    I64,
    SCALARS,
    SIZES,
    ir,
    llvm_type,
    maker,
    pack,
    ptx,
    unpack,
    word,
)
from mlirt.builder.numba_cuda_intrinsics.threads import shared_address
from mlirt.builder.numba_cuda_intrinsics.untyped import types


@maker
def ptx_instruction(
    text: str, result: str | None, arguments: Sequence[str], *, pure: bool = False, convergent: bool = False
) -> Any:
    """`word(..)`: a line in which `$0`.. are the registers of the result, then those of the arguments.

    Types are `float32` for a number, `float32*4` for a fragment, `float32[]` for an element of memory, which takes a
    pointer and an index, and `float32[shared]` for one of shared memory.
    """
    taken = [type_ for kind in arguments for type_ in _types(kind)]
    made = types.void if result is None else _types(result)[0]
    count = 0 if result is None else _count(result)

    def emit(builder: Any, *values: Any) -> Any:
        left, registers = iter(values), list[Any]()
        for kind in arguments:
            registers += _registers(builder, kind, left)
        element = None if result is None else llvm_type(SCALARS[result.partition("*")[0]])
        found = ptx(builder, text, [element] * count, registers, memory=not pure, pure=pure, convergent=convergent)
        if result is None:
            return None
        return pack(builder, element, found) if "*" in result else found[0]

    return word(made, taken, emit)


def _count(kind: str) -> int:
    return int(kind.partition("*")[2] or 1)


def _types(kind: str) -> list[Any]:
    """numba's types of an argument."""
    name, bracket, _ = kind.partition("[")
    if bracket:
        return [types.CPointer(SCALARS[name]), types.int64]
    element = SCALARS[kind.partition("*")[0]]
    return [types.UniTuple(element, _count(kind)) if "*" in kind else element]


def _registers(builder: Any, kind: str, values: Any) -> list[Any]:
    """The registers of an argument, which takes its values."""
    name, bracket, space = kind.partition("[")
    if not bracket:
        value = next(values)
        return unpack(builder, value, _count(kind)) if "*" in kind else [value]
    pointer, index = next(values), next(values)
    if space == "shared]":
        return [shared_address(builder, pointer, index, SIZES[name])]
    start = builder.bitcast(pointer, ir.PointerType(I8))
    return [builder.ptrtoint(builder.gep(start, [builder.mul(index, I64(SIZES[name]))]), I64)]
