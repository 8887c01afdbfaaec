"""Says in words which attributes a constraint of an op admits."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, MemRefType, TensorType, VectorType, f64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import BaseAttr, EqAttrConstraint, ParamAttrConstraint

_WORDS: dict[type[Attribute], str] = {
    TensorType: "tensor",
    MemRefType: "memref",
    VectorType: "vector",
    IntegerAttr: "integer",
    FloatAttr: "number",
    DenseArrayBase: "integers",
}


def constraint_text(constraint: object) -> str:
    """A few words, with the attribute's own name where there is no better one."""
    inner = getattr(constraint, "constraint", None) or getattr(constraint, "constr", None)
    if inner is not None:
        return constraint_text(inner)
    if isinstance(constraint, EqAttrConstraint):
        return f"`{cast('EqAttrConstraint[Attribute]', constraint).attr}`"
    if isinstance(constraint, BaseAttr):
        return _base_text(cast("BaseAttr[Attribute]", constraint).attr)
    if isinstance(constraint, ParamAttrConstraint):
        restricted = cast("ParamAttrConstraint[ParametrizedAttribute]", constraint)
        if restricted.base_attr is DenseArrayBase and restricted.param_constrs[0] == EqAttrConstraint(f64):
            return "numbers"
        return "boolean" if _is_boolean(restricted) else _base_text(restricted.base_attr)
    if (element := getattr(constraint, "elem_range_constraint", None)) is not None:
        return f"list of {constraint_text(element)}"
    return "anything"


def kinds_of(attribute: type[Attribute]) -> list[str]:
    """The words of an enumeration; none for other attributes."""
    if not issubclass(attribute, EnumAttribute):
        return []
    return [str(kind) for kind in attribute.enum_type]


def _base_text(base: type[Attribute]) -> str:
    if words := kinds_of(base):
        return ", ".join(f"`{word}`" for word in words)
    return _WORDS.get(base) or f"`{base.name}`"


def _is_boolean(constraint: ParamAttrConstraint[ParametrizedAttribute]) -> bool:
    return constraint.base_attr is IntegerAttr and "IntegerType(1)" in str(constraint.param_constrs[1])
