"""Reads what infer-nesting wrote, and keeps blocks in an order in which every value comes before its readers."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import pairwise
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FunctionType, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator, Pure

from mlirt.dialects.regions import ControlOp
from mlirt.dialects.trt.boundary import BoundaryOp

NESTING = "trt.nesting"


def has_boundaries(block: Block) -> bool:
    """Whether a block has layers at the borders of loops or conditionals."""
    return any(isinstance(op, BoundaryOp) for op in block.ops)


def follow_results(function: FuncOp) -> None:
    """Let the function's type say what it returns: lengths may have got names."""
    last = function.body.block.last_op
    if isinstance(last, ReturnOp):
        types = [value.type for value in last.operands]
        function.function_type = FunctionType.from_lists(list(function.function_type.inputs), types)


def path_of(op: Operation) -> tuple[str, ...]:
    """The loops and branches around an op, the outermost first."""
    given = op.attributes.get(NESTING)
    if not isinstance(given, ArrayAttr):
        return ()
    return tuple(name.data for name in cast("ArrayAttr[StringAttr]", given))


def set_path(op: Operation, path: tuple[str, ...]) -> None:
    """Say around which loops and branches an op stands."""
    if path:
        op.attributes[NESTING] = ArrayAttr(StringAttr(name) for name in path)
    else:
        op.attributes.pop(NESTING, None)


def forget_paths(block: Block) -> None:
    """Remove what infer-nesting wrote once all is in its place."""
    for op in block.walk():
        op.attributes.pop(NESTING, None)


def sort_block(block: Block) -> None:
    """Move ops behind the ops that compute their operands, and else leave them in their order."""
    ops = list(block.ops)
    order = {op: place for place, op in enumerate(ops)}
    waiting: dict[Operation, int] = {}
    readers: dict[Operation, list[Operation]] = {}
    for op in ops:
        needed = {owner for owner in _needed(op, block) if owner is not op}
        waiting[op] = len(needed)
        for owner in needed:
            readers.setdefault(owner, []).append(op)
    last = ops[-1] if ops and ops[-1].has_trait(IsTerminator) else None
    checks = [op for op in ops if not op.has_trait(Pure) and not isinstance(op, ControlOp) and op is not last]
    for before, after in pairwise(checks):
        if after not in readers.get(before, ()):
            readers.setdefault(before, []).append(after)
            waiting[after] += 1
    ready = [order[op] for op in ops if waiting[op] == 0 and op is not last]
    heapq.heapify(ready)
    for op in ops:
        op.detach()
    while ready:
        op = ops[heapq.heappop(ready)]
        block.add_op(op)
        for reader in readers.get(op, ()):
            waiting[reader] -= 1
            if waiting[reader] == 0 and reader is not last:
                heapq.heappush(ready, order[reader])
    if last is not None:
        block.add_op(last)


def _needed(op: Operation, block: Block) -> Iterator[Operation]:
    """The ops of the block that an op, or one inside of it, reads from."""
    for inner in op.walk():
        for value in inner.operands:
            owner = value.owner
            top: Operation | None = owner if isinstance(owner, Operation) else owner.parent_op()
            while top is not None and top.parent is not block:
                top = top.parent_op()
            if top is not None:
                yield top
