"""Reshapes move behind the pointwise ops that they feed."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.fused.access import AccessAttr, is_elementwise
from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.symbolic import Dim, substitute
from mlirt.dialects.tensor_types import dims, with_dims
from mlirt.passes.fusion.access_composition import identity_access, iteration_dims, unit_view
from mlirt.passes.fusion.epilogues import Accumulating
from mlirt.passes.remarks import applied, declined


@dataclass(frozen=True)
class SinkViewsPass(ModulePass):
    """Compute a pointwise op on the dimensions before a view, and view its result instead.

    So an activation or a bias behind a reshape can join the convolution or product before it. The viewed tensor is
    computed by such an op or a pointwise one, and the view is read by the pointwise op alone. Its other operands are
    views of tensors of the same dimensions, or read the same for all positions; where the view only adds or drops axes
    of length 1, they may be anything.

    Before:

        %v = fused.view %x : (tensor<2x4x1x8xf32>) -> tensor<2x4x8xf32>
        %y = fused.pointwise %v ["d0", "d1", "d2"], %b ["d1"] { max(v + b, 0) } : tensor<2x4x8xf32>

    After:

        %p = fused.pointwise %x ["d0", "d1", "d2", "d3"], %b ["d1"] { max(x + b, 0) } : tensor<2x4x1x8xf32>
        %y = fused.view %p : (tensor<2x4x1x8xf32>) -> tensor<2x4x8xf32>
    """

    name = "sink-views"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                if isinstance(inner, PointwiseOp) and len(inner.outputs) == 1:
                    _sink(inner)


def _sink(op: PointwiseOp) -> None:
    after = dims(op.outputs[0].type)
    views = [view for value in op.inputs if (view := _view_of(op, value, after)) is not None]
    if not views:
        if any(isinstance(value.owner, ViewOp) for value in op.inputs):
            declined(op, "the view has other readers, is not read element by element, or shows no computed tensor")
        return
    before = dims(views[0].input.type)
    sources: dict[SSAValue, SSAValue] = {view.output: view.input for view in views if dims(view.input.type) == before}
    places = unit_view(before, after)
    if any(isinstance(inner, IndexOp) for inner in op.body.block.ops):
        declined(op, "what it computes depends on the position")
        return
    reads: list[tuple[SSAValue, AccessAttr]] = []
    for value, access in zip(op.inputs, op.access, strict=True):
        read = _read_before(value, access, sources, before, places)
        if read is None:
            declined(op, "another operand is not broadcast along the dimensions that the view joins")
            return
        reads.append(read)
    _replace(op, [*sources], reads, with_dims(op.outputs[0].type, before))


def _view_of(op: PointwiseOp, value: SSAValue, shape: tuple[Dim, ...]) -> ViewOp | None:
    """The view behind an operand that is read element by element, and by this op alone."""
    view = value.owner
    if not isinstance(view, ViewOp) or {use.operation for use in value.uses} != {op}:
        return None
    reads = [access for other, access in zip(op.inputs, op.access, strict=True) if other is value]
    in_place = dims(value.type) == shape and all(is_elementwise(access, shape) for access in reads)
    return view if in_place and isinstance(view.input.owner, Accumulating | PointwiseOp) else None


def _read_before(
    value: SSAValue,
    access: AccessAttr,
    sources: dict[SSAValue, SSAValue],
    before: tuple[Dim, ...],
    places: dict[str, Dim] | None,
) -> tuple[SSAValue, AccessAttr] | None:
    """What to read, and where, on the dimensions before the view."""
    if value in sources:
        return sources[value], identity_access(len(before))
    if places is not None:
        return value, AccessAttr.of([substitute(index, places) for index in access.indices()])
    moves = any(name[0] == "d" and name[1:].isdigit() for name in iteration_dims(access))
    return None if moves else (value, access)


def _replace(
    op: PointwiseOp, views: list[SSAValue], reads: list[tuple[SSAValue, AccessAttr]], type_: Attribute
) -> None:
    block = op.parent
    assert block is not None
    moved = PointwiseOp([v for v, _ in reads], [a for _, a in reads], [type_], op.detach_region(op.body))
    view = ViewOp(moved.outputs[0], op.outputs[0].type)
    for new in (moved, view):
        new.location = op.location
        block.insert_op_before(new, op)
    applied(moved)
    view.output.name_hint = op.outputs[0].name_hint
    op.outputs[0].replace_all_uses_with(view.output)
    block.erase_op(op)
    for value in views:
        owner = value.owner
        assert isinstance(owner, ViewOp)
        owner.detach()
        owner.erase()
