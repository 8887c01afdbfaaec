"""Laws of layers that move elements: moves that leave every element in its place."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import SSAValue

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.integer_list import integers
from mlirt.dialects.tensor_types import dims, element_of, is_bool, is_unknown
from mlirt.dialects.trt.broadcast import BroadcastOp
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseKindAttr, ElementwiseOp
from mlirt.dialects.trt.padding import PaddingOp
from mlirt.dialects.trt.reduce import ReduceKind, ReduceOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.passes.cleanup.laws.law import Laws, Site


def drop_plain_shuffle(at: Site) -> SSAValue | None:
    """A shuffle without transposes to the dimensions that the input has."""
    op = at.op
    assert isinstance(op, ShuffleOp)
    moved = op.first_transpose is not None or op.second_transpose is not None
    return None if moved or any(map(is_unknown, dims(op.output.type))) else op.input


def drop_whole_slice(at: Site) -> SSAValue | None:
    """A slice of everything."""
    op = at.op
    assert isinstance(op, SliceOp)
    if op.start is None or op.stride is None or dims(op.output.type) != dims(op.input.type):
        return None
    whole = all(start == 0 for start in op.start.dims()) and all(step == 1 for step in integers(op.stride))
    return op.input if whole else None


def drop_plain_broadcast(at: Site) -> SSAValue | None:
    """A broadcast to the dimensions that the input has."""
    op = at.op
    assert isinstance(op, BroadcastOp)
    return op.input if dims(op.input.type) == dims(op.output.type) else None


def drop_empty_padding(at: Site) -> SSAValue | None:
    """A padding by nothing."""
    op = at.op
    assert isinstance(op, PaddingOp)
    return None if any((*integers(op.pre), *integers(op.post))) else op.input


def join_nonempty_parts(at: Site) -> SSAValue | None:
    """A concatenation of one tensor, or one of whose parts have length 0."""
    op = at.op
    assert isinstance(op, ConcatenationOp)
    if len(op.inputs) == 1:
        return op.inputs[0]
    axis = op.axis.value.data
    kept = [value for value in op.inputs if dims(value.type)[axis] != 0]
    if len(kept) in (0, len(op.inputs)):
        return None
    if len(kept) == 1:
        return kept[0]
    made = ConcatenationOp.build_inferred([kept], {"axis": op.axis}, op.location)
    block = op.parent
    assert block is not None
    block.insert_op_before(made, op)
    return made.output


def drop_empty_reduction(at: Site) -> SSAValue | None:
    """A reduction over no axes."""
    op = at.op
    assert isinstance(op, ReduceOp)
    return None if integers(op.axes) else op.input


def combine_stacked(at: Site) -> SSAValue | None:
    """The largest or smallest of a few tensors that are stacked for this reduction alone."""
    op = at.op
    assert isinstance(op, ReduceOp)
    stack, kind = op.input.owner, _EXTREMES.get(op.kind.data)
    if kind is None or not isinstance(stack, ConcatenationOp) or is_bool(element_of(op.input.type)):
        return None
    axis = stack.axis.value.data
    thin = all(dims(value.type)[axis] == 1 for value in stack.inputs)
    if not thin or len(stack.inputs) > _FEW or list(integers(op.axes)) != [axis] or not op.input.has_one_use():
        return None
    found = stack.inputs[0]
    for value in stack.inputs[1:]:
        found = at.make(ElementwiseOp, [found, value], {"kind": ElementwiseKindAttr(kind)}, stack)
    if op.keep_dims.value.data:
        return found
    shape = {"reshape_dims": DimsAttr.of(dims(op.output.type)), "zero_is_placeholder": BoolAttr.from_bool(False)}
    return at.make(ShuffleOp, [found, None], shape, stack)


_FEW = 8
_EXTREMES = {ReduceKind.MAX: ElementwiseKind.MAX, ReduceKind.MIN: ElementwiseKind.MIN}

LAWS: Laws = {
    ShuffleOp: (drop_plain_shuffle,),
    SliceOp: (drop_whole_slice,),
    BroadcastOp: (drop_plain_broadcast,),
    PaddingOp: (drop_empty_padding,),
    ConcatenationOp: (join_nonempty_parts,),
    ReduceOp: (drop_empty_reduction, combine_stacked),
}
