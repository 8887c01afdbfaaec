"""What a `pdl.pattern` means as a rule: its operations as patterns of layers, its rewrite as the making of new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.context import Context
from xdsl.dialects import pdl
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, VarResultDef

from mlirt.passes.pdl.rewriting import Rewrite, Untranslatable
from mlirt.passes.rules import Layer, Pattern, Rule
from mlirt.passes.rules.conditions import plain, spelt
from mlirt.passes.rules.layers import op as op_pattern
from mlirt.passes.rules.patterns import Constant, Value
from mlirt.passes.rules.search import Search, Then, named

_CONSTRAINTS = ("one_use", "constant")

__all__ = ["Untranslatable", "translated"]


def translated(pattern: pdl.PatternOp, ctx: Context, place: str) -> Rule:
    """The rule of a pattern; `place` is where it stands. Raises `Untranslatable` for what no rule can say."""
    rewrite = pattern.body.block.last_op
    if not isinstance(rewrite, pdl.RewriteOp) or rewrite.root is None or not rewrite.body.blocks:
        raise Untranslatable(pattern, "expected pdl.rewrite with the root, and with a body")
    names = {value: f"%{value.name_hint or number}" for number, value in enumerate(_values(pattern))}
    root = _Translation(ctx, names, _constraints(pattern)).layer(rewrite.root)
    root = replace(root, is_shared=False)
    for op in pattern.body.block.ops:
        if isinstance(op, pdl.OperationOp) and names[op.op] not in root.names():
            raise Untranslatable(op, "the root does not depend on this operation, so that nothing leads to it")
    name = "" if pattern.sym_name is None else f": pattern {pattern.sym_name.data}"
    return Rule(root, Rewrite(rewrite, names, ctx, f"{place}{name}"), f"{place}{name}")


def _values(pattern: pdl.PatternOp) -> list[SSAValue]:
    return [value for op in pattern.body.block.ops for value in op.results]


def _constraints(pattern: pdl.PatternOp) -> set[tuple[str, SSAValue]]:
    found: set[tuple[str, SSAValue]] = set()
    for op in pattern.body.block.ops:
        if isinstance(op, pdl.ApplyNativeConstraintOp):
            name = op.constraint_name.data
            if name not in _CONSTRAINTS or op.is_negated.value.data or len(op.args) != 1 or op.res:
                known = " and ".join(map(repr, _CONSTRAINTS))
                raise Untranslatable(
                    op, f"there is no native constraint {name!r} like this; there are {known}, of one argument"
                )
            found.add((name, op.args[0]))
    return found


@dataclass
class _Translation:
    ctx: Context
    names: dict[SSAValue, str]
    constraints: set[tuple[str, SSAValue]]

    def value(self, value: SSAValue) -> Pattern:
        """The pattern of an operand."""
        name, owner = self.names[value], value.owner
        if isinstance(owner, pdl.ResultOp):
            layer, index = self.layer(owner.parent_), owner.index.value.data
            if all(_has_no_result(kind, index) for kind in layer.kinds):
                raise Untranslatable(owner, f"{layer.described()} has no result {index}")
            return replace(layer, result=index)
        if not isinstance(owner, pdl.OperandOp):
            assert isinstance(owner, Operation)
            raise Untranslatable(owner, "expected pdl.operand or pdl.result as operand; ranges are not supported")
        if ("constant", value) in self.constraints:
            return Constant(name)
        kind = None if owner.value_type is None else self.bound(owner.value_type, "constantType")
        return TypedValue(name, kind=kind)

    def layer(self, value: SSAValue) -> BoundLayer:
        """The pattern of an operation."""
        op = value.owner
        assert isinstance(op, pdl.OperationOp)
        kind: type[Operation] = Operation if op.opName is None else self.ctx.get_op(op.opName.data)
        layer = op_pattern(kind, *(self.value(operand) for operand in op.operand_values))
        attributes = zip((one.data for one in op.attributeValueNames), op.attribute_values, strict=True)
        return BoundLayer(
            name=self.names[value],
            kinds=layer.kinds,
            operands=layer.operands,
            is_open=False,
            is_shared=("one_use", value) not in self.constraints,
            given=tuple((name, self.bound(one, "value")) for name, one in attributes),
            types=tuple(self.bound(one, "constantType") for one in op.type_values),
        )

    def bound(self, value: SSAValue, field: str) -> str | Attribute:
        """The attribute or type that PDL names, or the name of that which it leaves open."""
        owner = value.owner
        if not isinstance(owner, pdl.AttributeOp | pdl.TypeOp):
            assert isinstance(owner, Operation)
            raise Untranslatable(owner, "expected one pdl.attribute or pdl.type; ranges are not supported")
        if isinstance(owner, pdl.AttributeOp) and owner.value_type is not None:
            raise Untranslatable(
                owner, "a pdl.attribute has a value, or is left open; its type alone cannot be asked for"
            )
        found: Attribute | None = getattr(owner, field)
        return self.names[value] if found is None else found


def _has_no_result(kind: type[Operation], index: int) -> bool:
    results = [one for _, one in kind.get_irdl_definition().results] if issubclass(kind, IRDLOperation) else []
    return bool(results) and index >= len(results) and not any(isinstance(one, VarResultDef) for one in results)


@dataclass(frozen=True, eq=False)
class TypedValue(Value):
    """A value of a type, or of a type that a name stands for."""

    kind: str | Attribute | None = None

    def match(self, value: SSAValue, search: Search, then: Then) -> bool:
        wanted = [] if self.kind is None else [(self.kind, value.type, f"the type of {named(value.owner)}")]
        return self.keep(value, search, lambda: _bind_all(wanted, search, then))

    def names(self) -> set[str]:
        return super().names() | ({self.kind} if isinstance(self.kind, str) else set())


@dataclass(frozen=True, eq=False)
class BoundLayer(Layer):
    """An op with properties and result types that are given, or that names stand for."""

    given: tuple[tuple[str, str | Attribute], ...] = ()
    types: tuple[str | Attribute, ...] = ()

    def names(self) -> set[str]:
        bound = (*(one for _, one in self.given), *self.types)
        return super().names() | {one for one in bound if isinstance(one, str)}

    def match_op(self, found: Operation, search: Search, then: Then) -> bool:
        if len(found.operands) != len(self.operands) or (self.types and len(self.types) != len(found.results)):
            return search.mismatch(lambda: f"{named(found)} has {len(found.operands)} operands")
        own = [(wanted, _attribute(found, name), f"{name} of {named(found)}") for name, wanted in self.given]
        if any(attribute is None for _, attribute, _ in own):
            return search.mismatch(lambda: f"{named(found)} has other properties")
        types = [
            (wanted, result.type, f"the type of {named(found)}") for wanted, result in zip(self.types, found.results)
        ]
        return super().match_op(found, search, lambda: _bind_all([*own, *types], search, then))


def _attribute(op: Operation, name: str) -> Any:
    found = op.get_attr_or_prop(name)
    return getattr(op, name, None) if found is None else found


def _bind_all(wanted: Sequence[tuple[str | Attribute, Any, str]], search: Search, then: Then) -> bool:
    """Go on where each attribute is the one that is wanted, or is what its name stands for."""
    if not wanted:
        return then()
    (one, own, what), *rest = wanted

    def go_on() -> bool:
        return _bind_all(rest, search, then)

    if isinstance(one, str):
        return search.bind(one, own, go_on)
    return go_on() if one == own else search.mismatch(lambda: f"{what} is {spelt(plain(own))}, not {spelt(plain(one))}")
