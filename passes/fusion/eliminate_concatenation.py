"""Producers write their part of a joined tensor themselves."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.locations import fuse


@dataclass(frozen=True)
class EliminateConcatenationPass(ModulePass):
    """Mark the inputs of a concatenation that their producers may write straight into the result.

    Such an input is computed by a fused op and read by the concatenation alone. A concatenation of concatenations along
    the same axis becomes one. Inputs of the network, constants, views and tensors with other readers are copied.

    Before:

        %j = fused.concat %a, %x {axis = 1 : i64} : ...
        %y = fused.concat %j, %b {axis = 1 : i64} : ...

    After:

        %y = fused.concat %a, %x, %b {axis = 1 : i64, fused.in_place = [true, false, true]} : ...
    """

    name = "eliminate-concatenation"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, ConcatOp):
                _flatten(inner)
                flags = [_writes_in_place(value) for value in inner.inputs]
                if any(flags):
                    inner.in_place = flags


def _writes_in_place(value: SSAValue) -> bool:
    return isinstance(value.owner, FusedOp) and not isinstance(value.owner, ViewOp) and value.has_one_use()


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
