"""Concatenation elimination: producers write their part of a joined tensor in place."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.fused_op import FusedOp, IndexOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp, joins_axes
from mlirt.dialects.tensor_types import dims
from mlirt.passes.fusion.access_composition import unit_view
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule, some


@dataclass(frozen=True)
class EliminateConcatenationPass(RulePass):
    """Mark the inputs of a concatenation that their producers may write straight into the result.

    Such an input is computed by a fused op and read by the concatenation alone. A concatenation of concatenations along
    the same axis becomes one, a pointwise op behind a view that adds or drops axes of length 1 computes the view, and
    one behind a view that joins axes writes through it. With `views` any other op may write through a view of the first
    kind. Inputs of the network, constants, other views and tensors with other readers are copied.

    Before:

        %j = fused.concat %a, %x {axis = 1 : i64} : ...
        %y = fused.concat %j, %b {axis = 1 : i64} : ...

    After:

        %y = fused.concat %a, %x, %b {axis = 1 : i64, fused.in_place = [true, false, true]} : ...
    """

    name = "eliminate-concatenation"

    views: bool = False

    @rule(op(ConcatOp, inputs=some(op(ConcatOp).named("inner"))).named("outer"))
    def flatten(self, m: Match, outer: ConcatOp, inner: ConcatOp) -> Outcome:
        if inner.axis != outer.axis or not inner.output.has_one_use():
            return "{inner} joins along another axis, or is joined twice"
        outer.operands = [part for one in outer.inputs for part in (inner.inputs if one is inner.output else [one])]
        outer.location = m.location()
        return outer

    @rule(op(ViewOp, op(PointwiseOp).named("producer")).named("view"))
    def compute_in_view(self, m: Match, view: ViewOp, producer: PointwiseOp) -> Outcome:
        places = unit_view(dims(view.output.type), dims(view.input.type))
        if places is None or len(producer.outputs) != 1 or _asks_for_places(producer) or not _is_joined(view):
            return None
        accesses = [one.substituted(places) for one in producer.access]
        body = producer.detach_region(producer.body)
        return m.insert(PointwiseOp(list(producer.inputs), accesses, [view.output.type], body))

    @rule(op(ConcatOp).named("joined"))
    def mark(self, m: Match, joined: ConcatOp) -> Outcome:
        flags = tuple(_writes_in_place(value, self.views) for value in joined.inputs)
        if flags == joined.in_place:
            return None if all(flags) else f"{flags.count(False)} of {len(flags)} inputs are copied: {_WHY_COPIED}"
        m.note = f"{sum(flags)} of {len(flags)} inputs are written in place"
        joined.in_place = flags
        return joined


_WHY_COPIED = "inputs of the network, constants, views, or tensors with other readers"


def _writes_in_place(value: SSAValue, views: bool) -> bool:
    view = value.owner
    if isinstance(view, ViewOp) and isinstance(view.input.owner, PointwiseOp) and value.has_one_use():
        before, after = dims(view.input.type), dims(value.type)
        joins = unit_view(before, after) is None and joins_axes(before, after)
        return joins and _writes_in_place(view.input, False)
    if views and isinstance(view, ViewOp) and value.has_one_use():
        adds_units = unit_view(dims(value.type), dims(view.input.type)) is not None
        return adds_units and _writes_in_place(view.input, False)
    return isinstance(view, FusedOp) and not isinstance(view, ViewOp) and value.has_one_use()


def _asks_for_places(producer: PointwiseOp) -> bool:
    return any(isinstance(inner, IndexOp) for inner in producer.body.block.ops)


def _is_joined(view: ViewOp) -> bool:
    return any(isinstance(use.operation, ConcatOp) for use in view.output.uses)
