"""What symbols stand for while a network is interpreted: lengths read off the actual shapes of its tensors."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from xdsl.ir import Attribute, Operation

from mlirt.dialects.symbolic import Dim, coefficient_of, substitute, symbols
from mlirt.dialects.tensor_types import dims, is_unknown
from mlirt.errors import InvalidInputError

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_NONE: dict[str, int] = {}
_values: ContextVar[Mapping[str, int]] = ContextVar("symbol_values", default=_NONE)


@contextmanager
def symbol_values(values: Mapping[str, int]) -> Generator[None]:
    """Let `resolve` know these symbols inside a `with` block; the mapping may grow meanwhile."""
    token = _values.set(values)
    try:
        yield
    finally:
        _values.reset(token)


def bind(of: Attribute, shape: Sequence[int], values: dict[str, int], label: str) -> None:
    """Learn symbols from a tensor's actual shape; raises `InvalidInputError` where shape and type contradict."""
    expected = dims(of)
    text = f"[{', '.join(map(str, expected))}]"
    if len(expected) != len(shape):
        raise InvalidInputError(f"{label}: expected rank {len(expected)} {text}, got shape {list(shape)}")
    for axis, (dim, size) in enumerate(zip(expected, shape, strict=True)):
        if is_unknown(dim):
            continue
        rest = substitute(dim, values)
        if not isinstance(rest, int):
            solve(rest, size, values)
            rest = substitute(dim, values)
        if isinstance(rest, int) and rest != size:
            meaning = f"{dim} = {rest}" if str(dim) != str(rest) else str(rest)
            raise InvalidInputError(
                f"{label}: expected length {meaning} on axis {axis} of {text}, got shape {list(shape)}"
            )


def solve(dim: Dim, size: int, values: dict[str, int]) -> None:
    """Find the value of the only symbol of a linear expression, where it has one."""
    names = sorted(symbols(dim))
    if len(names) != 1:
        return
    try:
        factor = coefficient_of(dim, names[0])
    except ValueError:
        return
    offset = substitute(dim, {names[0]: 0})
    if isinstance(factor, int) and isinstance(offset, int) and factor and (size - offset) % factor == 0:
        values[names[0]] = (size - offset) // factor


def known(op: Operation, arrays: Sequence[Array]) -> dict[str, int]:
    """The values of all symbols that are known while an op is executed on these operands."""
    values = dict(_values.get())
    for operand, array in zip(op.operands, arrays, strict=True):
        bind(operand.type, array.shape, values, "its operand")
    return values


def resolve(op: Operation, dimensions: Sequence[Dim], arrays: Sequence[Array]) -> tuple[int, ...]:
    """The actual lengths that an op's property stands for, given the op's operands.

    Raises `InvalidInputError` where a symbol has no value yet.
    """
    values = known(op, arrays)
    result: list[int] = []
    for dim in dimensions:
        length = substitute(dim, values)
        if not isinstance(length, int):
            raise InvalidInputError(
                f"the length {dim} is not known: no input has the dimension {sorted(symbols(length))[0]}"
            )
        result.append(length)
    return tuple(result)
