"""Tensors with several readers that may lie in the result of a concatenation, so that nobody copies them."""

from __future__ import annotations

from itertools import accumulate
from typing import cast

from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.fused.slices import slice_starts
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.symbolic import Dim, modulo
from mlirt.dialects.tensor_types import byte_width, dims, element_of, memory_order, row_length, strides
from mlirt.passes.layout.layouts.order_costs import MAX_ACCESS_BYTES


def lie_in_place(block: Block) -> None:
    """Mark the inputs of concatenations that all readers can find there.

    Their rows then lie further apart, so they have to start at whole vectors as before. A tensor lies in one
    concatenation; a copy is left for the others.
    """
    joins = [op for op in block.ops if isinstance(op, ConcatOp)]
    taken = {value for op in joins for value, flag in zip(op.inputs, op.in_place, strict=True) if flag}
    for op in joins:
        flags = list(op.in_place)
        starts = accumulate((dims(value.type)[op.axis.value.data] for value in op.inputs), initial=cast("Dim", 0))
        for position, (value, start) in enumerate(zip(op.inputs, starts, strict=False)):
            if not flags[position] and value not in taken and _fits(op, value, start, block):
                flags[position] = True
                taken.add(value)
        if any(flags):
            op.in_place = flags


def _fits(op: ConcatOp, value: SSAValue, start: Dim, block: Block) -> bool:
    owner = value.owner
    computed = isinstance(owner, FusedOp) and not isinstance(owner, ViewOp) and owner.parent is block
    if slice_starts(owner) is not None and not value.has_one_use():
        return False  # it may be shown where its operand lies
    if not computed or not all(_reads_by_strides(use.operation, block) for use in value.uses):
        return False
    if memory_order(value.type) != memory_order(op.output.type) or row_length(value.type):
        return False
    return _keeps_vectors(op, value, start)


def _reads_by_strides(user: Operation, block: Block) -> bool:
    return isinstance(user, FusedOp) and user.parent is block


def _keeps_vectors(op: ConcatOp, value: SSAValue, start: Dim) -> bool:
    """Whether each row starts at a multiple of the widest access, except where that was not so before."""
    axis, sizes = op.axis.value.data, dims(value.type)
    whole, own = strides(op.output.type)[0], strides(value.type)[0]
    lanes = MAX_ACCESS_BYTES // byte_width(element_of(value.type))
    changed = [step for size, step, old in zip(sizes, whole, own, strict=True) if size != 1 and step != old]
    return all(modulo(step, lanes) == 0 for step in (start * whole[axis], *changed))
