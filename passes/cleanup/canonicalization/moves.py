"""Rules for layers that move elements: moves that leave every element in its place."""

from __future__ import annotations

from mlirt.dialects.integer_list import integers
from mlirt.dialects.tensor_types import dims, element_of, is_bool, is_unknown
from mlirt.dialects.trt.broadcast import BroadcastOp
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.padding import PaddingOp
from mlirt.dialects.trt.reduce import ReduceOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.passes.rules import Match, Outcome, either, op, rule

_MAX_MOVES = 8


@rule(op(ShuffleOp, first_transpose=None, second_transpose=None).named("shuffle"))
def drop_plain_shuffle(shuffle: ShuffleOp) -> Outcome:
    """A shuffle without transposes to the dimensions that the input has."""
    moves = any(map(is_unknown, dims(shuffle.output.type))) or shuffle.input.type != shuffle.output.type
    return None if moves else shuffle.input


@rule(op(SliceOp).named("slice_"))
def drop_whole_slice(slice_: SliceOp) -> Outcome:
    """A slice of everything."""
    if slice_.start is None or slice_.stride is None or dims(slice_.output.type) != dims(slice_.input.type):
        return None
    whole = all(start == 0 for start in slice_.start.dims()) and all(step == 1 for step in integers(slice_.stride))
    return slice_.input if whole else None


@rule(op(BroadcastOp).named("broadcast"))
def drop_plain_broadcast(broadcast: BroadcastOp) -> Outcome:
    """A broadcast to the dimensions that the input has."""
    return broadcast.input if broadcast.input.type == broadcast.output.type else None


@rule(op(PaddingOp).named("padding"))
def drop_empty_padding(padding: PaddingOp) -> Outcome:
    """A padding by nothing."""
    return None if any((*integers(padding.pre), *integers(padding.post))) else padding.input


@rule(op(ConcatenationOp).named("joined"))
def join_nonempty_parts(m: Match, joined: ConcatenationOp) -> Outcome:
    """A concatenation of one tensor, or one of whose parts have length 0."""
    if len(joined.inputs) == 1:
        return joined.inputs[0]
    axis = joined.axis.value.data
    kept = [value for value in joined.inputs if dims(value.type)[axis] != 0]
    if len(kept) in (0, len(joined.inputs)):
        return None
    return kept[0] if len(kept) == 1 else m.make(ConcatenationOp, kept, axis=joined.axis)


@rule(op(ReduceOp, axes=()).named("reduction"))
def drop_empty_reduction(reduction: ReduceOp) -> Outcome:
    """A reduction over no axes."""
    return reduction.input if reduction.input.type == reduction.output.type else None


@rule(op(ReduceOp).named("reduction"))
def drop_unit_reduction(m: Match, reduction: ReduceOp) -> Outcome:
    """A reduction over axes of length 1: each result is its only element."""
    lengths = dims(reduction.input.type)
    axes = integers(reduction.axes)
    if not axes or any(lengths[axis] != 1 for axis in axes):
        return None
    if reduction.input.type == reduction.output.type:
        return reduction.input
    sizes = dims(reduction.output.type)
    return m.make(ShuffleOp, reduction.input, None, reshape_dims=sizes, zero_is_placeholder=False)


@rule(op(ReduceOp, op(ConcatenationOp).named("stack"), kind=either("max", "min")).named("reduction"))
def combine_stacked(m: Match, reduction: ReduceOp, stack: ConcatenationOp) -> Outcome:
    """The largest or smallest of a few tensors that are stacked for this reduction alone."""
    axis = stack.axis.value.data
    thin = all(dims(value.type)[axis] == 1 for value in stack.inputs)
    if not thin or len(stack.inputs) > _MAX_MOVES or list(integers(reduction.axes)) != [axis]:
        return None
    if is_bool(element_of(stack.output.type)):
        return None
    found = stack.inputs[0]
    for value in stack.inputs[1:]:
        found = m.make(ElementwiseOp, found, value, kind=reduction.kind.data.value).output
    if reduction.keep_dims.value.data:
        return found
    return m.make(ShuffleOp, found, None, reshape_dims=dims(reduction.output.type), zero_is_placeholder=False)


RULES = (
    drop_plain_shuffle,
    drop_whole_slice,
    drop_plain_broadcast,
    drop_empty_padding,
    join_nonempty_parts,
    drop_empty_reduction,
    drop_unit_reduction,
    combine_stacked,
)
