"""The operands of xDSL's ops, read without a view for each time, and the ops of its blocks, without an iterator object.

`op.operands` is the tuple of operands itself; `op.operands[k] = value` still replaces one of the op.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, cast

from xdsl.ir import Block, BlockArgument, BlockOps, Operation, OpResult, SSAValue, SSAValues, Use
from xdsl.irdl import (
    BeforeVariadicSingleAccessor,
    SameVariadicAccessor,
    UniqueVariadicAccessor,
    VariadicAttrAccessor,
    VarIRConstruct,
    get_op_constructs,
)
from xdsl.traits import OpTrait


class _Operands(SSAValues[SSAValue]):
    """The operands of an op, which are replaced by assigning to their places."""

    op: Operation

    def __setitem__(self, index: int, value: SSAValue) -> None:
        op = self.op
        now, use = op._operands, op._operand_uses[index]
        now[index].remove_use(use)
        value.add_use(use)
        changed = list(now)
        changed[index] = value
        op._operands = _operands(op, changed)


_NONE = SSAValues[SSAValue]()


def _operands(op: Operation, values: Iterable[SSAValue]) -> SSAValues:
    made = _Operands(values)
    if not made:
        return _NONE
    made.op = op
    return made


def give_operands(op: Operation, values: Iterable[SSAValue]) -> None:
    """Let an op that has no operands yet use these."""
    given = op._operands = _operands(op, values)
    op._operand_uses = _uses(op, given)


def _set_operands(op: Operation, new: Iterable[SSAValue]) -> None:
    values = tuple(new)
    for value, use in zip(op._operands, op._operand_uses):
        value.remove_use(use)
    give_operands(op, values)


def _uses(op: Operation, values: Sequence[SSAValue]) -> tuple[Use, ...]:
    uses = tuple([Use(op, index) for index in range(len(values))])
    for value, use in zip(values, uses, strict=True):
        value.add_use(use)
    return uses


def _iterate(ops: BlockOps) -> Iterator[Operation]:
    return ops_from(ops.block.first_op)


def ops_from(op: Operation | None) -> Iterator[Operation]:
    """An op and those behind it in its block; each may be erased when it comes."""
    while op is not None:
        following = op._next_op
        yield op
        op = following


def _walk_block(block: Block, *, reverse: bool = False, region_first: bool = False) -> Iterator[Operation]:
    for op in reversed(block.ops) if reverse else ops_from(block.first_op):
        if region_first and op.regions:
            yield from op.walk(reverse=reverse, region_first=True)
            continue
        yield op
        if op.regions and not region_first:
            for region in reversed(op.regions) if reverse else op.regions:
                yield from region.walk(reverse=reverse)


def _get_single(accessor: BeforeVariadicSingleAccessor, op: Operation, objtype: object = None) -> Any:
    if accessor.construct is VarIRConstruct.OPERAND:
        return op._operands[accessor.idx]
    if accessor.construct is VarIRConstruct.RESULT:
        return op.results[accessor.idx]
    return get_op_constructs(op, accessor.construct)[accessor.idx]


def _several(index: Callable[..., Any]) -> Callable[..., Any]:
    """What an accessor of a variadic definition gives has `types`, also where it is a part of a tuple of values."""

    def values(self: object, *given: Any) -> Any:
        found: Any = index(self, *given)
        return _as_values(found) if isinstance(given[-1], SSAValues) else found

    return values


def _as_values(found: Sequence[SSAValue]) -> SSAValues:
    return found if type(found) is SSAValues else SSAValues(found)


def _has_trait(cls: type[Operation], trait: Any, *, value_if_unregistered: bool = True) -> bool:
    traits = cls.traits.traits
    if not isinstance(trait, type):
        return cls.get_trait(trait) is not None
    known = _with_trait.get((cls, trait))
    if known is None or known[0] is not traits:
        known = _with_trait[cls, trait] = traits, cls.get_trait(trait) is not None
    return known[1]


_with_trait: dict[tuple[type[Operation], type], tuple[frozenset[OpTrait], bool]] = {}


def install() -> None:
    """Put the quick ways in place; once is enough, more does no harm."""
    setattr(Operation, "operands", property(attrgetter("_operands"), _set_operands))
    for of, name, held in _PLAIN:
        setattr(of, name, property(attrgetter(held)))
    if "__getitem__" in vars(SSAValues):
        del SSAValues.__getitem__
        for accessor in (UniqueVariadicAccessor, SameVariadicAccessor, VariadicAttrAccessor):
            setattr(accessor, "index", _several(accessor.index))
    setattr(Operation, "has_trait", classmethod(_has_trait))
    BlockOps.__iter__ = cast("Any", _iterate)
    Block.walk = cast("Any", _walk_block)
    BeforeVariadicSingleAccessor.__get__ = cast("Any", _get_single)


_PLAIN = (
    (SSAValue, "type", "_type"),
    (OpResult, "owner", "op"),
    (BlockArgument, "owner", "block"),
    (Operation, "next_op", "_next_op"),
    (Operation, "prev_op", "_prev_op"),
    (Block, "first_op", "_first_op"),
    (Block, "last_op", "_last_op"),
)
"""Properties that say nothing but what a field holds."""
