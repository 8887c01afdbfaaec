"""Values of kernel functions: how type checkers see them, and objects of several that loops carry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeGuard, cast

from xdsl.dialects.builtin import IndexType, f32, i1
from xdsl.ir import Attribute, SSAValue

from mlirt.kernels.lib.builder.run_values import Index, Number, Value, value_of

__all__ = [
    "Index", "Number", "Value", "bool_of", "is_run_time", "leaves", "rebuilt", "type_of_number", "types_of", "value_of",
]  # fmt: skip


_LEAVES, _LISTS = (SSAValue, int, float), (tuple, list)


def leaves(value: Any) -> list[Any]:
    """The values of the run and the numbers that a value consists of, in order; texts and their like have none."""
    if isinstance(value, _LEAVES):
        return [value]
    if isinstance(value, _LISTS):
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
