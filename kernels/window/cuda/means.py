"""Sums of windows become means on a GPU: how many cells count, and what the sums are multiplied by for that."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from mlirt.dialects.fused.window import WindowOp
from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.loops.reduction_nest import accumulator_of
from mlirt.kernels.lib.loops.taps import Axis, AxisCode

_FEW_TAPS = 4  # of a window along an axis, with which the reciprocals of all their numbers are in the code


class Means:
    """The means of a pooling layer. The number of cells that count is a product of counts, one for each axis."""

    def __init__(self, k: KernelBuilder, op: WindowOp, axes: Sequence[Axis], codes: Sequence[AxisCode]) -> None:
        self.k, self.axes, self.codes = k, axes, codes
        self.posts = [k.size(post) if op.includes_padding else None for post in op.post_padding.dims()]
        self.accumulator = accumulator_of(op.epilogue)

    def count(self, axis: int, start: SSAValue) -> SSAValue:
        """How many cells count along an axis of a window that starts there."""
        return self.codes[axis].count(start, self.posts[axis])

    def of(self, totals: Sequence[SSAValue], counts: Sequence[Sequence[SSAValue]]) -> list[SSAValue]:
        """Sums divided by their numbers of cells, 0 of none; in single precision they are multiplied by reciprocals."""
        if self.accumulator != f32:
            return [self._quotient(total, own) for total, own in zip(totals, counts, strict=True)]
        factors = {own: self._reciprocal(own) for own in dict.fromkeys(map(tuple, counts))}
        s = self.k.scalars(f32)
        return [s.mul(total, factors[tuple(own)]) for total, own in zip(totals, counts, strict=True)]

    def _quotient(self, total: SSAValue, counts: Sequence[SSAValue]) -> SSAValue:
        k, s, cells = self.k, self.k.scalars(self.accumulator), self.k.constant(1)
        for count in counts:
            cells = k.mul(cells, count)
        divisor = s.cast(k.to_integer(k.max(cells, 1), i64), i64)
        return k.typed(s.div(k.ready(total), divisor), self.accumulator)

    def _reciprocal(self, counts: Sequence[SSAValue]) -> SSAValue:
        """One over the product of counts; those that the code knows are in the first of the others."""
        k, s = self.k, self.k.scalars(f32)
        times = prod(number for count in counts if (number := known(count)) is not None)
        found: SSAValue | None = None
        for count, axis in zip(counts, self.axes, strict=True):
            if known(count) is None:
                one = self._one_over(count, axis, times if found is None else 1)
                found = one if found is None else s.mul(found, one)
        return k.constant(1 / max(times, 1), f32) if found is None else found

    def _one_over(self, count: SSAValue, axis: Axis, times: int) -> SSAValue:
        """The reciprocal of `count * times`, where the count is a window's size at most; nothing counts as one."""
        k, s = self.k, self.k.scalars(f32)
        if not isinstance(axis.size, int) or axis.size > _FEW_TAPS:
            number = s.cast(k.to_integer(k.max(k.mul(count, times), 1), i64), i64)
            return s.div(k.constant(1, f32), number)
        found = k.constant(1 / max(times, 1), f32)
        for taps in range(2, axis.size + 1):
            found = k.select(k.compare("eq", count, taps), k.constant(1 / (taps * max(times, 1)), f32), found)
        return found


__all__ = ["Means"]
