"""Folds transposes, slices, reshapes and broadcasts around attention into its accesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.fused_op import is_identity
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.integer_list import integer_list
from mlirt.dialects.locations import fuse
from mlirt.dialects.tensor_types import dims
from mlirt.passes.fusion.access_composition import compose, iteration_dims
from mlirt.passes.fusion.view_composition import through_view
from mlirt.passes.remarks import applied, declined


@dataclass(frozen=True)
class FoldMovesIntoAttentionPass(ModulePass):
    """Let attention read what its operands were copied from, and write its result in the order that is wanted.

    The splitting into heads, a reshape and a transpose, so costs nothing, nor does the joining. An operand is read in
    its place as long as neighbours along a head stay neighbours in memory. The result takes another order where one
    transpose is all that reads it.

    Before:

        %h = fused.view %x : (tensor<1x64x128xf16>) -> tensor<1x64x4x32xf16>
        %q = fused.pointwise %h ["d0", "d2", "d1", "d3"] { h } : tensor<1x4x64x32xf16>
        %a = fused.attention %q, .. ["d0", "d1", "d2", "d4"] : tensor<1x4x64x32xf16>
        %y = fused.pointwise %a ["d0", "d2", "d1", "d3"] { a } : tensor<1x64x4x32xf16>

    After:

        %y = fused.attention %x, .. ["d0", "d2", "32*d1 + d4"], order = [0, 2, 1, 3] : tensor<1x64x4x32xf16>
    """

    name = "fold-moves-into-attention"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, AttentionOp):
                _fold_operands(inner)
                _fold_result(inner)


def _fold_operands(op: AttentionOp) -> None:
    head = [op.batch_rank + 2, op.batch_rank + 2, op.batch_rank + 3]
    for position in range(len(op.operands)):
        while (found := _before(op.operands[position], op.access.data[position], op)) is not None:
            value, access = found
            if position < len(head) and not _keeps_neighbours(access, op.access.data[position], f"d{head[position]}"):
                declined(op, f"neighbours along a head of operand {position} would not be neighbours in memory")
                break
            applied(op, f"operand {position} is read where it lies")
            mover = op.operands[position].owner
            op.operands[position] = value
            op.properties["access"] = ArrayAttr(_replaced(op.access.data, position, access))
            if isinstance(mover, ViewOp | PointwiseOp) and mover.results[0].first_use is None:
                op.location = fuse(mover, op) if isinstance(mover, PointwiseOp) else op.location
                mover.detach()
                mover.erase()


def _before(value: SSAValue, access: AccessAttr, op: AttentionOp) -> tuple[SSAValue, AccessAttr] | None:
    """What a value was copied or viewed from, and how to read that instead."""
    owner = value.owner
    if isinstance(owner, ViewOp):
        space = (*op.batch, op.queries, op.keys, op.depth, op.columns)
        extents = {f"d{axis}": extent for axis, extent in enumerate(space)}
        indices = through_view(dims(owner.input.type), dims(value.type), access.indices(), extents)
        return None if indices is None else (owner.input, AccessAttr.of(indices))
    if isinstance(owner, PointwiseOp) and len(owner.inputs) == len(owner.outputs) == 1 and is_identity(owner.body):
        return owner.inputs[0], compose(owner.access.data[0], access)
    return None


def _keeps_neighbours(new: AccessAttr, old: AccessAttr, head: str) -> bool:
    """Whether neighbours along a head are neighbours in memory, or were none before either."""
    return _has_neighbours(new, head) or not _has_neighbours(old, head)


def _has_neighbours(access: AccessAttr, head: str) -> bool:
    *outer, last = access.indices()
    alone = all(head not in iteration_dims(AccessAttr.of([index])) for index in outer)
    return alone and head not in iteration_dims(AccessAttr.of([last - iteration(int(head[1:]))]))


def _replaced(accesses: Sequence[AccessAttr], position: int, access: AccessAttr) -> list[AccessAttr]:
    return [*accesses[:position], access, *accesses[position + 1 :]]


def _fold_result(op: AttentionOp) -> None:
    """Take the order that a transpose, the only reader, gives the result."""
    uses = [use.operation for use in op.output.uses]
    reader = uses[0] if len(uses) == 1 else None
    if not isinstance(reader, PointwiseOp) or len(reader.inputs) != 1 or not is_identity(reader.body):
        return
    transposed = _order_of(reader, op)
    if transposed is None:
        return
    before = op.axes()
    order = [before[axis] for axis in transposed]
    properties = {**op.properties, "order": integer_list(order)}
    properties.pop("operandSegmentSizes", None)
    made = AttentionOp.build(
        operands=[*op.operands[:3], list(op.extras)],
        properties=properties,
        result_types=[reader.outputs[0].type],
        regions=[op.detach_region(op.score)],
    )
    made.location = fuse(op, reader)
    applied(made, "the result has the order of the transpose behind it")
    block = op.parent
    assert block is not None
    block.insert_op_before(made, op)
    made.output.name_hint = reader.outputs[0].name_hint
    reader.outputs[0].replace_all_uses_with(made.output)
    for old in (reader, op):
        old.detach()
        old.erase()


def _order_of(reader: PointwiseOp, op: AttentionOp) -> list[int] | None:
    """For each axis of a transpose's result, the axis of attention's result that it is; None for other moves."""
    sizes = dims(op.output.type)
    if len(reader.outputs) != 1 or len(dims(reader.outputs[0].type)) != len(sizes):
        return None
    indices = reader.access.data[0].indices()
    # An axis of length 1 is read at 0: any place of length 1 is its own.
    ones = [axis for axis, index in enumerate(indices) if index == 0 and sizes[axis] == 1]
    order: list[int] = []
    for place, size in enumerate(dims(reader.outputs[0].type)):
        found = [axis for axis, index in enumerate(indices) if index == iteration(place)]
        if not found and size == 1 and ones:
            found = [ones.pop(0)]
        if len(found) != 1 or sizes[found[0]] != size:
            return None
        order += found
    return order if sorted(order) == list(range(len(sizes))) else None
