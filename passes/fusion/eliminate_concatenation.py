"""Concatenation elimination: producers write their part of a joined tensor in place."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.fused_op import FusedOp, IndexOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.locations import fuse
from mlirt.dialects.symbolic import substitute
from mlirt.dialects.tensor_types import dims
from mlirt.passes.fusion.access_composition import unit_view
from mlirt.passes.remarks import applied, declined


@dataclass(frozen=True)
class EliminateConcatenationPass(ModulePass):
    """Mark the inputs of a concatenation that their producers may write straight into the result.

    Such an input is computed by a fused op and read by the concatenation alone. A concatenation of concatenations along
    the same axis becomes one, and a pointwise op behind a view that adds or drops axes of length 1 computes the view.
    With `views` any other op may write through such a view. Inputs of the network, constants, other views and tensors
    with other readers are copied.

    Before:

        %j = fused.concat %a, %x {axis = 1 : i64} : ...
        %y = fused.concat %j, %b {axis = 1 : i64} : ...

    After:

        %y = fused.concat %a, %x, %b {axis = 1 : i64, fused.in_place = [true, false, true]} : ...
    """

    name = "eliminate-concatenation"

    views: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, ConcatOp):
                _flatten(inner)
                for view in list(dict.fromkeys(value.owner for value in inner.inputs)):
                    if isinstance(view, ViewOp):
                        _compute_in_view(view)
                flags = [_writes_in_place(value, self.views) for value in inner.inputs]
                if any(flags):
                    inner.in_place = flags
                    applied(inner, f"{sum(flags)} of {len(flags)} inputs are written in place")
                if not all(flags):
                    declined(inner, f"{flags.count(False)} of {len(flags)} inputs are copied: {_WHY_COPIED}")


_WHY_COPIED = "inputs of the network, constants, views, or tensors with other readers"


def _writes_in_place(value: SSAValue, views: bool) -> bool:
    view = value.owner
    if views and isinstance(view, ViewOp) and value.has_one_use():
        adds_units = unit_view(dims(value.type), dims(view.input.type)) is not None
        return adds_units and not isinstance(view.input.owner, PointwiseOp) and _writes_in_place(view.input, False)
    return isinstance(view, FusedOp) and not isinstance(view, ViewOp) and value.has_one_use()


def _compute_in_view(view: ViewOp) -> None:
    """Let the pointwise op behind a view iterate over the view's dimensions."""
    op = view.input.owner
    if not isinstance(op, PointwiseOp) or len(op.outputs) != 1 or not view.input.has_one_use():
        return
    places = unit_view(dims(view.output.type), dims(view.input.type))
    if places is None or any(isinstance(inner, IndexOp) for inner in op.body.block.ops):
        return
    accesses = [AccessAttr.of([substitute(index, places) for index in access.indices()]) for access in op.access]
    made = PointwiseOp(list(op.inputs), accesses, [view.output.type], op.detach_region(op.body))
    made.location = fuse(op, view)
    block = view.parent
    assert block is not None
    block.insert_op_before(made, view)
    view.output.replace_all_uses_with(made.outputs[0])
    block.erase_op(view)
    op.detach()
    op.erase()


def _flatten(op: ConcatOp) -> None:
    """Take the inputs of joined inputs; they were visited before, so one level is enough."""
    parts: list[SSAValue] = []
    for value in op.inputs:
        inner = value.owner
        if isinstance(inner, ConcatOp) and inner.axis == op.axis and value.has_one_use() and inner.parent is op.parent:
            parts += inner.inputs
            op.location = fuse(inner, op)
        else:
            parts.append(value)
    joined = [value.owner for value in op.inputs]
    op.operands = parts
    for inner in joined:
        if isinstance(inner, ConcatOp) and inner.output.first_use is None:
            inner.detach()
            inner.erase()
