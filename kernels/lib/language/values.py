"""Values of kernel functions: how type checkers see them, and objects of several that loops carry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

from xdsl.dialects.builtin import IndexType, f32, i1
from xdsl.ir import Attribute, SSAValue

if TYPE_CHECKING:
    # Operators are read from the syntax tree; these are for those who check types.
    class Value(SSAValue):
        """A value that is known at run time: an SSA value on which the operators of the language work."""

        def __add__(self, other: Operand) -> Value: ...
        def __radd__(self, other: Operand) -> Value: ...
        def __sub__(self, other: Operand) -> Value: ...
        def __rsub__(self, other: Operand) -> Value: ...
        def __mul__(self, other: Operand) -> Value: ...
        def __rmul__(self, other: Operand) -> Value: ...
        def __truediv__(self, other: Operand) -> Value: ...
        def __rtruediv__(self, other: Operand) -> Value: ...
        def __floordiv__(self, other: Operand) -> Value: ...
        def __rfloordiv__(self, other: Operand) -> Value: ...
        def __mod__(self, other: Operand) -> Value: ...
        def __rmod__(self, other: Operand) -> Value: ...
        def __and__(self, other: Operand) -> Value: ...
        def __or__(self, other: Operand) -> Value: ...
        def __xor__(self, other: Operand) -> Value: ...
        def __rshift__(self, other: Operand) -> Value: ...
        def __neg__(self) -> Value: ...
        def __abs__(self) -> Value: ...
        def __lt__(self, other: Operand) -> bool: ...
        def __le__(self, other: Operand) -> bool: ...
        def __gt__(self, other: Operand) -> bool: ...
        def __ge__(self, other: Operand) -> bool: ...
        def __index__(self) -> int: ...
        def __getitem__(self, index: Any) -> Value: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...

    Operand: TypeAlias = "Value | float"
else:
    Value = SSAValue

Index: TypeAlias = "Value | int"
"""A number of elements or a place: known when the kernel is read, or a value of the run."""

Number: TypeAlias = "Value | float"
"""A number to compute with."""


def leaves(value: Any) -> list[Any]:
    """The values of the run and the numbers that a value consists of, in order; texts and their like have none."""
    if isinstance(value, SSAValue | int | float):
        return [value]
    if isinstance(value, tuple | list):
        return [leaf for part in _parts(value) for leaf in leaves(part)]
    if is_dataclass(value) and not isinstance(value, type):
        return [leaf for part in fields(value) for leaf in leaves(getattr(value, part.name))]
    return []


def _parts(value: Any) -> Sequence[Any]:
    return value


def is_run_time(value: Any) -> TypeGuard[SSAValue]:
    """Whether a value is known at run time only."""
    return isinstance(value, SSAValue)


def types_of(value: Any) -> list[Attribute]:
    """The types of the values of the run in it, in their order, each once."""
    found: list[Attribute] = []
    for leaf in leaves(value):
        if is_run_time(leaf):
            type_: Attribute = leaf.type
            found += [] if type_ in found else [type_]
    return found


def type_of_number(number: float) -> Attribute:
    """What a number of Python is at run time where nothing else tells: a place, a condition, or a float32."""
    return i1 if isinstance(number, bool) else f32 if isinstance(number, float) else IndexType()


def value_of(value: SSAValue | int) -> Value:
    """The same value, or number, for type checkers: one with operators."""
    return cast("Value", value)


def bool_of(condition: SSAValue) -> bool:
    """The same condition (i1) for type checkers: one that `if`, `and`, `or` and `not` take."""
    return cast("bool", condition)


def rebuilt(value: Any, take: Callable[[], Any]) -> Any:
    """The same kind of value with other leaves, which `take` gives in their order."""
    if isinstance(value, SSAValue | int | float):
        return take()
    if isinstance(value, tuple | list):
        made = [rebuilt(part, take) for part in _parts(value)]
        return made if isinstance(value, list) else tuple(made)
    if is_dataclass(value) and not isinstance(value, type) and leaves(value):
        changed = {part.name: rebuilt(getattr(value, part.name), take) for part in fields(value)}
        return replace(value, **changed)
    return value
