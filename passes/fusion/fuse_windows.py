"""Fuses two poolings in a row into one with larger windows."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith

from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.fused_op import YieldOp
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.tensor_types import element_of, is_float
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class FuseWindowsPass(RulePass):
    """Let one pooling do the work of two in a row, of which nobody else reads the first.

    The largest of the largest is that of a larger window, as long as windows of the first leave no gap. A mean of means
    is one, as is a sum of sums, where these windows share no element either, lie inside of the input and hold floats.
    The larger windows may overlap, but not so much that more elements are read than by both.

    Before:

        %p = fused.window max %x {window = [2], stride = [2], ..} : (tensor<4x1x9xf32>) -> tensor<4x1x4xf32>
        %y = fused.window max %p {window = [2], stride = [2], ..} : (tensor<4x1x4xf32>) -> tensor<4x1x2xf32>

    After:

        %y = fused.window max %x {window = [4], stride = [4], ..} : (tensor<4x1x9xf32>) -> tensor<4x1x2xf32>
    """

    name = "fuse-windows"

    @rule(op(WindowOp, op(WindowOp).named("inner"), ...).named("outer"))
    def fuse(self, m: Match, outer: WindowOp, inner: WindowOp) -> Outcome:
        if outer.input is not inner.output:
            return None
        if (reason := _obstacle(outer, inner)) is not None:
            return reason
        made = WindowOp(
            outer.kind.data,
            inner.input,
            outer.output.type,
            outer.detach_region(outer.epilogue),
            window=_sizes(outer, inner),
            stride=_strides(outer, inner),
            dilation=integers(inner.dilation),
            pre_padding=inner.pre_padding.dims(),
            post_padding=inner.post_padding.dims(),
            axis=outer.axis.value.data,
            extras=outer.extras,
            access=list(outer.access),
        )
        made.attributes = dict(outer.attributes)
        return m.insert(made)


def _obstacle(outer: WindowOp, inner: WindowOp) -> str | None:
    """Why two poolings are not one; None where they are."""
    if outer.kind.data is not inner.kind.data or outer.axes() != inner.axes():
        return "they combine otherwise, or along other axes"
    if inner.extras or not _only_rounds(inner):
        return "{inner} computes more"
    if any(one != 1 for one in (*integers(inner.dilation), *integers(outer.dilation))):
        return "their windows are dilated"
    if not outer.is_inside():
        return "windows of {outer} reach beyond its input, or its lengths are not known"
    sizes, steps = integers(inner.window), integers(inner.stride)
    if any(step > size for size, step in zip(sizes, steps, strict=True)):
        return "windows of {inner} leave elements out"
    if outer.kind.data is not WindowKind.MAX and (sizes != steps or not inner.is_inside() or not _of_floats(inner)):
        return "a mean or a sum of {inner} has shares of an element that others have too"
    if _reads(outer, inner) > prod(sizes) / prod(steps) + prod(integers(outer.window)) / prod(_strides(outer, inner)):
        return "larger windows would overlap, and read more than both"
    return None


def _only_rounds(window: WindowOp) -> bool:
    """Whether a window gives what it combines in the type of its elements."""
    steps = window.epilogue.block.ops
    same = element_of(window.input.type) == element_of(window.output.type)
    return same and all(isinstance(one, arith.TruncFOp | arith.ExtFOp | YieldOp) for one in steps)


def _of_floats(window: WindowOp) -> bool:
    return is_float(accumulator_type(window.epilogue))


def _sizes(outer: WindowOp, inner: WindowOp) -> list[int]:
    """The elements of a larger window, axis by axis."""
    pairs = zip(integers(inner.window), integers(inner.stride), integers(outer.window), strict=True)
    return [size + (count - 1) * step for size, step, count in pairs]


def _strides(outer: WindowOp, inner: WindowOp) -> list[int]:
    return [first * second for first, second in zip(integers(inner.stride), integers(outer.stride), strict=True)]


def _reads(outer: WindowOp, inner: WindowOp) -> float:
    """How often the larger windows read an element of the input."""
    return prod(_sizes(outer, inner)) / prod(_strides(outer, inner))


__all__ = ["FuseWindowsPass"]
