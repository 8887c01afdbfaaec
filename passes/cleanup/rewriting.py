"""How the clean-up passes change a function: small steps that keep names and locations."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.locations import fuse_locations
from mlirt.dialects.regions import tensor_blocks


def blocks(module: ModuleOp) -> Iterator[Block]:
    """The blocks of the functions of a module, and of their branches and loops."""
    return tensor_blocks(module)


def insert_before(op: Operation, new: Operation, location: LocationAttr | None = None) -> SSAValue:
    """Put a new op before `op`, with its location unless another is given; returns its first result."""
    block = op.parent
    assert block is not None
    new.location = op.location if location is None else location
    block.insert_op_before(new, op)
    return new.results[0]


def replace(op: Operation, *values: SSAValue) -> None:
    """Let the readers of an op read `values`, and erase it; new values take over the names of the old ones."""
    for old, new in zip(op.results, values, strict=True):
        if new.name_hint is None:
            new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()


def only_reader(value: SSAValue) -> Operation | None:
    """The one op that reads a value, however often; None where there are several or none."""
    users = {use.operation for use in value.uses}
    return users.pop() if len(users) == 1 else None


def join_location(op: Operation, *others: Operation) -> None:
    """Let an op also bear the names of others that it has taken over."""
    op.location = fuse_locations([*(other.location for other in others), op.location])
