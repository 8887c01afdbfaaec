"""Slices that nobody has to copy: adjacent ones that are joined again, and others that are read where they lie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.fused.slices import show, slice_starts
from mlirt.dialects.locations import fuse
from mlirt.dialects.symbolic import Dim, modulo
from mlirt.dialects.tensor_types import byte_width, dims, element_of, memory_order, row_length, strides
from mlirt.passes.layout.layouts.order_costs import MAX_ACCESS_BYTES


def join_slices(block: Block) -> None:
    """Let concatenations take a tensor instead of all its slices in their order."""
    for op in [inner for inner in block.ops if isinstance(inner, ConcatOp)]:
        inputs, flags = _joined(op)
        if len(inputs) < len(op.inputs):
            old = [value.owner for value in op.inputs]
            op.operands = inputs
            op.in_place = flags
            for slice_ in old:
                if isinstance(slice_, Operation) and all(not list(result.uses) for result in slice_.results):
                    op.location = fuse(slice_, op)
                    slice_.detach()
                    slice_.erase()


def _joined(op: ConcatOp) -> tuple[list[SSAValue], list[bool]]:
    inputs: list[SSAValue] = []
    flags: list[bool] = []
    values, in_place = tuple(op.inputs), op.in_place
    position = 0
    while position < len(values):
        count = _slices_of_one(islice(values, position, None), op.axis.value.data)
        owner = values[position].owner
        if count > 1 and isinstance(owner, Operation):
            inputs.append(owner.operands[0])
            flags.append(False)
        else:
            inputs.append(values[position])
            flags.append(in_place[position])
        position += max(count, 1)
    return inputs, flags


def _slices_of_one(values: Iterable[SSAValue], axis: int) -> int:
    """How many of the first values are, in their order, all of one tensor; 0 where they are not."""
    source: SSAValue | None = None
    reached: Dim = 0
    for count, value in enumerate(values, 1):
        starts = slice_starts(value.owner)
        if starts is None or not isinstance(value.owner, Operation):
            return 0
        own = value.owner.operands[0]
        if source is not None and own is not source:
            return 0
        source = own
        whole, part = dims(source.type), dims(value.type)
        if any(start != (reached if k == axis else 0) for k, start in enumerate(starts)):
            return 0
        if any(k != axis and size != length for k, (size, length) in enumerate(zip(part, whole, strict=True))):
            return 0
        reached = reached + part[axis]
        if reached == whole[axis]:
            return count if memory_order(source.type) == memory_order(value.type) else 0
    return 0


def show_slices(block: Block) -> None:
    """Let slices be read where their operands lie, where rows there start at whole vectors."""
    written = {
        value
        for op in block.ops
        if isinstance(op, ConcatOp)
        for value, flag in zip(op.inputs, op.in_place, strict=True)
        if flag
    }
    for op in block.ops:
        starts = slice_starts(op)
        if starts is not None and op.results[0] not in written and _may_show(op, starts, block):
            show(op)


def _may_show(op: Operation, starts: Sequence[Dim], block: Block) -> bool:
    source, result = op.operands[0], op.results[0]
    if not all(isinstance(use.operation, FusedOp) and use.operation.parent is block for use in result.uses):
        return False
    owner = source.owner
    if not isinstance(owner, FusedOp) or owner.parent is not block or row_length(result.type):
        return False
    if memory_order(source.type) != memory_order(result.type):
        return False
    lanes, steps = MAX_ACCESS_BYTES // byte_width(element_of(source.type)), strides(source.type)[0]
    begin: Dim = 0
    for start, step in zip(starts, steps, strict=True):
        begin = begin + start * step
    own, sizes = strides(result.type)[0], dims(result.type)
    changed = [step for step, old, size in zip(steps, own, sizes, strict=True) if size != 1 and step != old]
    return all(modulo(step, lanes) == 0 for step in (begin, *changed))


__all__ = ["join_slices", "show_slices"]
