"""Dead code elimination of launches, and of copies and views that change nothing."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.fused.access import is_elementwise
from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.fused_op import FusedOp, is_identity
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.constant import ConstantOp


@dataclass(frozen=True)
class EliminateDeadLayersPass(ModulePass):
    """Erase fused ops whose results nothing reads, and those that only copy: their readers read the original.

    A copy is a pointwise op that yields the element that it reads at the same place, a view of the same dimensions, or
    the concatenation of one tensor. A view of a view becomes one. Copies that change the layout in memory stay.

    Before:

        %v = fused.view %x : (tensor<2x3xf32>) -> tensor<6xf32>
        %w = fused.view %v : (tensor<6xf32>) -> tensor<3x2xf32>
        %y = fused.pointwise %w ["d0", "d1"] { w } : tensor<3x2xf32>

    After:

        %y = fused.view %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
    """

    name = "eliminate-dead-layers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = list(tensor_blocks(op))
        for block in found:
            _skip_copies(block)
        for block in reversed(found):  # what only an inner block read goes too
            _erase_unread(block)


def _skip_copies(block: Block) -> None:
    for op in block.ops:
        if isinstance(op, ViewOp):
            _view_the_source(op)
        source = _copied(op)
        if source is not None and source.type == op.results[0].type:
            if source.name_hint is None:
                source.name_hint = op.results[0].name_hint
            op.results[0].replace_all_uses_with(source)


def _view_the_source(op: ViewOp) -> None:
    source = op.input.owner
    if isinstance(source, ViewOp):
        op.operands = [source.input]


def _copied(op: Operation) -> SSAValue | None:
    """The value that an op copies without change."""
    if isinstance(op, ViewOp):
        return op.input
    if isinstance(op, ConcatOp) and len(op.inputs) == 1:
        return op.inputs[0]
    if isinstance(op, PointwiseOp) and len(op.inputs) == len(op.outputs) == 1 and is_identity(op.body):
        return op.inputs[0] if is_elementwise(op.access.data[0], dims(op.outputs[0].type)) else None
    return None


def _erase_unread(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if isinstance(op, FusedOp | ConstantOp) and all(result.first_use is None for result in op.results):
            block.erase_op(op)
