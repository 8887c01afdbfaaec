"""Lets running totals read and write the format, and go the way, that the layers around them ask for."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import BoolAttr, f32

from mlirt.dialects.tensor_types import dims, element_of, is_half
from mlirt.dialects.trt.cumulative import CumulativeOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule, value

WIDENED = op(IdentityOp, value("x")).named("widened")
REVERSED = op(SliceOp, value("x")).named("inner")


@dataclass(frozen=True)
class SimplifyCumulativePass(RulePass):
    """Remove conversions and reversals on both sides of a `trt.cumulative`.

    Its totals are computed in float32 and rounded once, whatever the format of its input: halves that are widened in
    front of it, and whose totals become halves again, need no launch for either. Totals of reversed elements that are
    reversed again are those from the other end. With `rows_in_halves=false` conversions stay where totals run along the
    last dimension, where each element is converted alone: vectors convert faster than that.

    Before:

        %w = trt.identity %x : (tensor<4x9xf16>) -> tensor<4x9xf32>
        %t = trt.cumulative sum %w {axis = 1 : i64} : ...
        %y = trt.identity %t : (tensor<4x9xf32>) -> tensor<4x9xf16>

    After:

        %y = trt.cumulative sum %x {axis = 1 : i64} : (tensor<4x9xf16>) -> tensor<4x9xf16>
    """

    name = "simplify-cumulative"

    rows_in_halves: bool = True

    @rule(op(IdentityOp, op(CumulativeOp, WIDENED).named("total")).named("narrowed"))
    def keep_the_format(self, m: Match, widened: IdentityOp, total: CumulativeOp, narrowed: IdentityOp) -> Outcome:
        given = widened.input.type
        if not self.rows_in_halves and total.axis.value.data == len(dims(given)) - 1:
            return "its totals run along rows"
        if not is_half(element_of(given)) or narrowed.output.type != given or not _is_float32(total):
            return "the totals are not rounded to the format that was widened"
        return m.make(CumulativeOp, widened.input, **total.properties)

    @rule(op(SliceOp, op(CumulativeOp, REVERSED).named("total")).named("outer"))
    def go_the_other_way(self, m: Match, inner: SliceOp, total: CumulativeOp, outer: SliceOp) -> Outcome:
        axis = total.axis.value.data
        if not (_reverses(inner, axis) and _reverses(outer, axis)):
            return "the slices do more than reverse the axis of the totals"
        reverse = BoolAttr.from_bool(not total.reverse.value.data)
        return m.make(CumulativeOp, inner.input, **{**total.properties, "reverse": reverse})


def _is_float32(total: CumulativeOp) -> bool:
    return element_of(total.input.type) == f32


def _reverses(slice_: SliceOp, axis: int) -> bool:
    """Whether a slice has all elements, along this axis alone from the last to the first."""
    sizes = dims(slice_.input.type)
    strides = None if slice_.stride is None else list(slice_.stride.get_values())
    return (
        strides == [-1 if i == axis else 1 for i in range(len(sizes))]
        and list(slice_.sizes()) == list(sizes)
        and list(slice_.starts()) == [size - 1 if i == axis else 0 for i, size in enumerate(sizes)]
    )
