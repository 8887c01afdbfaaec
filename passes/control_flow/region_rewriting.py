"""Moves ops out of regions, and inlines copies of regions into their surroundings."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import Pure

from mlirt.dialects.regions import ControlOp, Terminator, is_bridge, tensor_blocks


def control_ops(module: ModuleOp) -> list[Operation]:
    """The branches and loops of a module, inner ones first."""
    found = [op for block in tensor_blocks(module) for op in block.ops if op.regions and isinstance(op, ControlOp)]
    return sorted(found, key=_depth, reverse=True)


def _depth(op: Operation) -> int:
    depth, outer = 0, op.parent_op()
    while outer is not None:
        depth, outer = depth + 1, outer.parent_op()
    return depth


def copy_before(block: Block, arguments: Sequence[SSAValue], before: Operation) -> list[SSAValue]:
    """Copies of a region's ops in front of an op, with its arguments replaced; returns what the region ends with."""
    target = before.parent
    assert target is not None
    mapping: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        if isinstance(op, Terminator):
            return [mapping.get(value, value) for value in op.operands]
        target.insert_op_before(op.clone(value_mapper=mapping), before)
    return []


def replace(op: Operation, values: Sequence[SSAValue]) -> None:
    """Let the readers of an op read other values, and erase it with its regions."""
    for old, new in zip(op.results, values, strict=True):
        new.name_hint = new.name_hint or old.name_hint
        old.replace_all_uses_with(new)
    op.detach()
    op.drop_all_references()
    op.erase(safe_erase=False)


def is_pure(op: Operation) -> bool:
    """Whether an op, with all that is inside of it, does nothing but compute its results."""
    if isinstance(op, Terminator) or is_bridge(op):
        return True
    if isinstance(op, ControlOp):
        return all(is_pure(inner) for region in op.regions for block in region.blocks for inner in block.ops)
    return op.has_trait(Pure)


def is_outside(value: SSAValue, op: Operation) -> bool:
    """Whether a value is defined outside of an op's regions."""
    owner = value.owner
    holder: Operation | None = owner if isinstance(owner, Operation) else owner.parent_op()
    if isinstance(owner, Block) and holder is op:
        return False
    while holder is not None:
        if holder is op and owner is not op:
            return False
        holder = holder.parent_op()
    return True
