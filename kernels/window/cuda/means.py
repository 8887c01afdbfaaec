"""Sums of windows become means on a GPU: how many cells count, and what the sums are multiplied by for that."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32, i64

from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.window import WindowOp
from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language import Value, kernel, value_of
from mlirt.kernels.lib.language.words import cast, constant, integer_of, prod, static_range
from mlirt.kernels.lib.nests.taps import Axis, AxisCode
from mlirt.kernels.window.generic import mean

_FEW_TAPS = 4  # of a window along an axis, with which the reciprocals of all their numbers are in the code


class Means:
    """The means of a pooling layer. The number of cells that count is a product of counts, one for each axis."""

    def __init__(self, k: KernelBuilder, op: WindowOp, axes: Sequence[Axis], codes: Sequence[AxisCode]) -> None:
        self.axes, self.codes = axes, codes
        self.posts = [value_of(k.size(post)) if op.includes_padding else None for post in op.post_padding.dims()]
        self.accumulator = accumulator_type(op.epilogue)

    @kernel
    def count(self, axis: int, start: Value) -> Value:
        """How many cells count along an axis of a window that starts there."""
        return self.codes[axis].count(start, self.posts[axis])

    @kernel
    def of(self, totals: Sequence[Value], counts: Sequence[Sequence[Value]]) -> list[Value]:
        """Sums divided by their numbers of cells, 0 of none; in single precision they are multiplied by reciprocals."""
        if self.accumulator != f32:
            return [mean(total, own, self.accumulator) for total, own in zip(totals, counts, strict=True)]
        factors = {own: self._reciprocal(own) for own in dict.fromkeys(map(tuple, counts))}
        return [total * factors[tuple(own)] for total, own in zip(totals, counts, strict=True)]

    @kernel
    def _reciprocal(self, counts: Sequence[Value]) -> Value:
        """One over the product of counts; those that the code knows are in the first of the others."""
        times, found = prod([known(count) or 0 for count in counts if known(count) is not None]), None
        for count, axis in zip(counts, self.axes, strict=True):
            if known(count) is None:
                one = self._one_over(count, axis, times if found is None else 1)
                found = one if found is None else found * one
        return constant(1 / max(times, 1), f32) if found is None else found

    @kernel
    def _one_over(self, count: Value, axis: Axis, times: int) -> Value:
        """The reciprocal of `count * times`, where the count is a window's size at most; nothing counts as one."""
        if not isinstance(axis.size, int) or axis.size > _FEW_TAPS:
            number = cast(integer_of(max(count * times, 1), i64), i64, f32)
            return 1.0 / number
        found = constant(1 / max(times, 1), f32)
        for taps in static_range(2, axis.size + 1):
            found = constant(1 / (taps * max(times, 1)), f32) if count == taps else found
        return found


__all__ = ["Means"]
