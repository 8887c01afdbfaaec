"""Plain Python values to the attributes that an op's definition asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, cast

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, FloatAttr, IntegerAttr, StringAttr, UnitAttr, f64, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.symbolic import Expr


def properties_of(op: type[IRDLOperation], values: Mapping[str, object]) -> dict[str, Attribute]:
    """The attributes for the properties of an op; `None` leaves a property at its default.

    Raises `VerifyException` for a name that is no property of the op.
    """
    bases = _bases(op)
    for name in values:
        if name not in bases:
            raise VerifyException(f"{op.name} has no property {name!r}; it has {', '.join(sorted(bases)) or 'none'}")
    return {name: _attribute(bases[name], value) for name, value in values.items() if value is not None}


@cache
def _bases(op: type[IRDLOperation]) -> dict[str, frozenset[type[Attribute]]]:
    definitions = op.get_irdl_definition().properties
    return {name: frozenset(definition.constr.get_bases() or ()) for name, definition in definitions.items()}


def _attribute(bases: frozenset[type[Attribute]], value: object) -> Attribute:
    if isinstance(value, Attribute):
        return value
    if isinstance(value, int | str):
        return _shared(bases, type(value), value)
    if not isinstance(value, list | tuple):
        return _made(bases, value)
    parts = tuple(cast("Sequence[object]", value))
    if all([type(one) is int for one in parts]):  # not floats: zeros of both signs are equal
        return _shared(bases, tuple, parts)
    return _made(bases, parts)


@lru_cache(maxsize=4096)
def _shared(bases: frozenset[type[Attribute]], kind: type, value: object) -> Attribute:
    """Attributes never change, and most ops have those of many others."""
    return _made(bases, value)


def _made(bases: frozenset[type[Attribute]], value: object) -> Attribute:
    if isinstance(value, bool):
        return UnitAttr() if UnitAttr in bases else BoolAttr.from_bool(value)
    if isinstance(value, int):
        return FloatAttr(float(value), f64) if FloatAttr in bases else IntegerAttr(value, i64)
    if isinstance(value, float):
        return FloatAttr(value, f64)
    if isinstance(value, str):
        return _text(bases, value)
    assert isinstance(value, list | tuple)
    return _sequence(bases, cast("Sequence[object]", value))


def _text(bases: frozenset[type[Attribute]], value: str) -> Attribute:
    for base in bases:
        if issubclass(base, EnumAttribute):
            words = [str(one) for one in base.enum_type]
            if value not in words:
                raise VerifyException(f"{value!r} is none of {', '.join(words)}")
            return cast("type[Any]", base)(base.enum_type(value))
    return StringAttr(value)


def _sequence(bases: frozenset[type[Attribute]], values: Sequence[object]) -> Attribute:
    if DimsAttr in bases:
        return DimsAttr.of([value for value in values if isinstance(value, int | Expr)])
    if any(isinstance(value, float) for value in values):
        return DenseArrayBase.from_list(f64, [float(value) for value in values if isinstance(value, int | float)])
    return DenseArrayBase.from_list(i64, [value for value in values if isinstance(value, int)])
