"""How xDSL 0.74.0 makes ops and attributes, in less time; nothing that can be seen changes.

Where something is not plain here, or wrong, xDSL's own code runs.

- ops are made from values and types without asking for the kind of each definition again: `_build_op`
- attributes whose class asks nothing of its data are not checked: `_is_never_wrong`
- parameters of attributes are checked by their class where a constraint asks for no more: `_verify_parameters`
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from xdsl.dialects.builtin import UNKNOWN_LOC, DenseArrayBase, IntegerType, i32
from xdsl.ir import Attribute, Block, Data, Operation, OpResult, ParametrizedAttribute, Region, SSAValue, SSAValues
from xdsl.irdl import (
    AnyAttr,
    AnyOf,
    AttrConstraint,
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    BaseAttr,
    IRDLOperation,
    OpDef,
    OptionalDef,
    ParamAttrDef,
    TypeVarConstraint,
    VariadicDef,
    VarIRConstruct,
    irdl_build_arg_list,
    irdl_build_regions_arg,
    irdl_op_init,
)

from mlirt.dialects.xdsl_hashes import remember_hash
from mlirt.dialects.xdsl_operands import give_operands


@dataclass(frozen=True)
class _Recipe:
    """How the ops of a definition are made: for each operand and result the least and the largest number of values."""

    operands: Sequence[tuple[int, int]]
    results: Sequence[tuple[int, int]]
    is_plain: bool
    sizes: Sequence[tuple[str, bool, bool]]
    """The names of properties or attributes with the numbers of values: whether a property, whether for operands."""


_RECIPE = "_mlirt_recipe"
_ANY_NUMBER = 1 << 60


def _recipe_of(definition: OpDef) -> _Recipe:
    found = vars(definition).get(_RECIPE)
    if found is None:
        found = vars(definition)[_RECIPE] = _new_recipe(definition)
    return found


def _new_recipe(definition: OpDef) -> _Recipe:
    sizes: list[tuple[str, bool, bool]] = []
    for option in definition.options:
        if isinstance(option, AttrSizedOperandSegments | AttrSizedResultSegments):
            is_operands = isinstance(option, AttrSizedOperandSegments)
            sizes.append((option.attribute_name, option.as_property, is_operands))
    known = len(sizes) == sum(not type(option).__name__.startswith("Parse") for option in definition.options)
    is_plain = known and not definition.successors
    counts = [[_count_of(one) for _, one in given] for given in (definition.operands, definition.results)]
    return _Recipe(counts[0], counts[1], is_plain, sizes)


def _count_of(definition: object) -> tuple[int, int]:
    if isinstance(definition, OptionalDef):
        return 0, 1
    return (0, _ANY_NUMBER) if isinstance(definition, VariadicDef) else (1, 1)


def _flat(given: Sequence[Any], counts: Sequence[tuple[int, int]], kind: type) -> tuple[list[Any], list[int]] | None:
    """What is given as one list, and how many there are for each definition; None for what is not plain."""
    if len(given) != len(counts):
        return None
    flat: list[Any] = []
    sizes: list[int] = []
    for one, (least, most) in zip(given, counts, strict=True):
        if isinstance(one, kind):
            flat.append(one)
            sizes.append(1)
            continue
        several: Sequence[Any] = () if one is None else one
        if not isinstance(several, list | tuple) or not least <= len(several) <= most:
            return None
        for value in several:
            if not isinstance(value, kind):
                return None
            flat.append(value)
        sizes.append(len(several))
    return flat, sizes


@cache
def _numbers(sizes: tuple[int, ...]) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i32, sizes)


_xdsl_op_init = irdl_op_init


def _build_op(
    self: IRDLOperation,
    op_def: OpDef,
    *,
    operands: Sequence[Any],
    result_types: Sequence[Any],
    properties: Mapping[str, Attribute | None],
    attributes: Mapping[str, Attribute | None],
    successors: Sequence[Any],
    regions: Sequence[Any],
) -> None:
    recipe = _recipe_of(op_def)
    values = _flat(operands, recipe.operands, SSAValue) if recipe.is_plain and not successors else None
    types = _flat(result_types, recipe.results, Attribute) if values is not None else None
    if values is None or types is None:
        _xdsl_op_init(
            self,
            op_def,
            operands=operands,
            result_types=result_types,
            properties=properties,
            attributes=attributes,
            successors=successors,
            regions=regions,
        )
        return
    own = {name: attribute for name, attribute in properties.items() if attribute is not None}
    others = {name: attribute for name, attribute in attributes.items() if attribute is not None}
    for name, is_property, is_operands in recipe.sizes:
        (own if is_property else others)[name] = _numbers(tuple((values if is_operands else types)[1]))
    inner: Sequence[Region] = ()
    if regions or op_def.regions:
        built = [irdl_build_regions_arg(region) for region in regions]
        inner, _ = irdl_build_arg_list(
            VarIRConstruct.REGION, built, op_def.regions, f"Error in {op_def.name} builder: "
        )
    _init_op(self, operands=values[0], result_types=types[0], properties=own, attributes=others, regions=inner)


def _init_op(
    self: Operation,
    *,
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = {},
    attributes: Mapping[str, Attribute] = {},
    location: Any = None,
    successors: Sequence[Block] = (),
    regions: Sequence[Region] = (),
) -> None:
    give_operands(self, operands)
    self.results = SSAValues([OpResult(type_, self, index) for index, type_ in enumerate(result_types)])
    self.properties = dict(properties)
    self.attributes = dict(attributes)
    self.location = UNKNOWN_LOC if location is None else location
    if successors:
        self.successors = list(successors)
    self.regions = ()
    for region in regions:
        self.add_region(region)
    self.__post_init__()


@cache
def _defaults(of: type[IRDLOperation]) -> Sequence[tuple[bool, str, Attribute]]:
    """The properties and attributes that an op has where they are not given: whether a property, name and value."""
    definition = of.get_irdl_definition()
    found = [(True, *one) for one in definition.properties.items()]
    found += [(False, *one) for one in definition.attributes.items()]
    return [
        (is_property, name, one.default_value)
        for is_property, name, one in found
        if not isinstance(one, OptionalDef) and one.default_value is not None
    ]


def _fill_in_defaults(self: IRDLOperation) -> None:
    for is_property, name, value in _defaults(type(self)):
        (self.properties if is_property else self.attributes).setdefault(name, value)
    Operation.__post_init__(self)  # which implicit builders replace


@cache
def _is_never_wrong(kind: type[Attribute]) -> bool:
    """Whether attributes of a class hold data of which nothing is asked."""
    is_data, of = issubclass(kind, Data), cast("Any", kind)
    return is_data and of.verify is Attribute.verify and of._verify is Attribute._verify


def _verify_attribute(self: Attribute) -> None:
    if _is_never_wrong(type(self)):
        return
    self._verify()
    if not isinstance(self, _KINDS):
        raise TypeError("Attributes should only be Data or ParametrizedAttribute")


_KINDS = (Data, ParametrizedAttribute)
_BASES = "_mlirt_bases"
_xdsl_verify = ParamAttrDef.verify


def _verify_parameters(self: ParamAttrDef, attr: ParametrizedAttribute) -> None:
    known = vars(self)
    if _BASES not in known:
        known[_BASES] = _bases_of(self)
        remember_hash(type(attr))
    bases: Sequence[tuple[str, tuple[type, ...]]] | None = known[_BASES]
    values = vars(attr)
    if bases is None or not all([isinstance(values[name], base) for name, base in bases]):
        _xdsl_verify(self, attr)


def _bases_of(definition: ParamAttrDef) -> Sequence[tuple[str, tuple[type, ...]]] | None:
    """The classes that each parameter may have, where that is all that is asked of them; else None."""
    found: list[tuple[str, tuple[type, ...]]] = []
    for name, parameter in definition.parameters:
        constraint: AttrConstraint = parameter.constr
        if isinstance(constraint, TypeVarConstraint):
            constraint = constraint.base_constraint
        bases = _classes_of(constraint)
        if bases is None:
            return None
        found.append((name, bases))
    return found


def _classes_of(constraint: AttrConstraint) -> tuple[type, ...] | None:
    if isinstance(constraint, AnyAttr):
        return (Attribute,)
    if isinstance(constraint, BaseAttr):
        return (constraint.attr,)
    if isinstance(constraint, AnyOf):
        parts = [_classes_of(one) for one in constraint.attr_constrs]
        return None if None in parts else tuple(base for part in parts if part is not None for base in part)
    return None


def install() -> None:
    """Put the quick ways in place; once is enough, more does no harm."""
    Operation.__init__ = _init_op
    setattr(sys.modules[irdl_op_init.__module__], "irdl_op_init", _build_op)  # where `IRDLOperation` looks it up
    IRDLOperation.__post_init__ = _fill_in_defaults
    Attribute.__post_init__ = _verify_attribute
    ParamAttrDef.verify = _verify_parameters
