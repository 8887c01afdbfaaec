"""Where the samples of a resized axis look in the input, and with which weights: from tables, or computed in the
kernel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IndexType, f64, i64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.interpolation import ROUNDING, Coordinate, Resampling, ResizeKind, Rounding, Selector
from mlirt.dialects.kernel.core import LoadOp, ReduceKind
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.builder.kernel_builder import Extent, KernelBuilder


class Sample(ABC):
    """One sample of an axis: how many input elements it weighs, which, and whether it lies outside (None: never)."""

    count: Extent
    outside: SSAValue | None

    @abstractmethod
    def tap(self, t: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The input index of a tap and its weight."""


class Taps(ABC):
    """One resized axis."""

    @abstractmethod
    def at(self, position: SSAValue) -> Sample:
        """The sample at a position of the result."""


class TableTaps(Taps):
    """Indices and weights of all samples, computed when the engine is built."""

    def __init__(
        self, k: KernelBuilder, how: Resampling, before: int, after: int, scale: float, wide: Attribute
    ) -> None:
        import numpy as np

        from mlirt.dialects.tensor_types import numpy_dtype

        index, weights = how.taps(before, after, scale)
        self.k, self.wide, self.taps = k, wide, index.shape[1]
        self.length = k.size(before)
        self.count, self.step = k.size(self.taps), k.stride(self.taps)
        self.index = k.weights(np.ascontiguousarray(index, np.int64), "resize.index")
        self.weights = k.weights(np.ascontiguousarray(weights, numpy_dtype(wide)), "resize.weights")
        beyond = how.outside(before, after, scale)
        self.beyond = k.weights(beyond, "resize.outside") if beyond.any() else None

    def at(self, position: SSAValue) -> Sample:
        return _TableSample(self, position)


class _TableSample(Sample):
    def __init__(self, of: TableTaps, position: SSAValue) -> None:
        self.of, self.position, self.count = of, position, of.count
        self.outside = None if of.beyond is None else of.k.value(LoadOp(of.beyond, [position], [1]))

    def tap(self, t: SSAValue) -> tuple[SSAValue, SSAValue]:
        of, places = self.of, [self.position, t]
        index = of.k.value(LoadOp(of.index, places, [of.step, 1]))
        return of.k.clamp(of.k.from_integer(index), of.length), of.k.value(LoadOp(of.weights, places, [of.step, 1]))


class ComputedTaps(Taps):
    """An axis whose lengths are known only at run time: the formulas of `interpolation.Resampling`, in double
    precision.
    """

    def __init__(
        self, k: KernelBuilder, how: Resampling, before: Dim, after: Dim, scale: float | None, wide: Attribute
    ) -> None:
        self.k, self.how, self.wide = k, how, wide
        self.length, self.size = k.size(before), k.size(after)
        self.is_scale_given = scale is not None
        self.before, self.after = self.number(self.length), self.number(self.size)
        self.scale = self.binary(arith.DivfOp, self.after, self.before) if scale is None else k.scalar(scale, f64)

    def number(self, index: SSAValue) -> SSAValue:
        return self.k.value(arith.SIToFPOp(self.k.to_integer(index, i64), f64))

    def constant(self, value: float) -> SSAValue:
        return self.k.constant(value, f64)

    def binary(self, op: type[arith.FloatingPointLikeBinaryOperation], a: SSAValue, b: SSAValue) -> SSAValue:
        return self.k.value(op(a, b))

    def whole(self, value: SSAValue) -> SSAValue:
        """A float without fraction as an index."""
        return self.k.value(arith.IndexCastOp(self.k.value(arith.FPToSIOp(value, i64)), IndexType()))

    def at(self, position: SSAValue) -> Sample:
        return _ComputedSample(self, self._place(position))

    def _place(self, position: SSAValue) -> SSAValue:
        """The real-valued position of a sample in the input."""
        add, sub, mul, div = arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp
        x, one, half = self.number(position), self.constant(1.0), self.constant(0.5)
        last = self.binary(sub, self.before, one)
        is_single = self.k.compare("eq", self.size, 1)
        steps = self.k.value(arith.SelectOp(is_single, one, self.binary(sub, self.after, one)))
        single = self.constant(0.0)
        scaled = self.binary(div, self.binary(add, x, half), self.scale)
        always = self.how.selector is not Selector.UPPER
        match self.how.coordinate:
            case Coordinate.ASYMMETRIC:
                place = self.binary(div, x, self.scale)
            case Coordinate.HALF_PIXEL:
                place = self.binary(sub, scaled, half)
            case Coordinate.PYTORCH_HALF_PIXEL:
                place, always = self.binary(sub, scaled, half), False
            case Coordinate.TF_HALF_PIXEL_FOR_NN:
                place = scaled
            case Coordinate.ALIGN_CORNERS:
                place = self._aligned(self.binary(mul, x, last))
            case Coordinate.HALF_PIXEL_SYMMETRIC:
                ratio = self.binary(div, self.after, self.binary(mul, self.scale, self.before))
                center = self.binary(mul, self.binary(mul, self.before, half), self.binary(sub, one, ratio))
                place = self.binary(sub, self.binary(add, center, scaled), half)
            case Coordinate.TF_CROP_AND_RESIZE:
                start, end = (self.binary(mul, self.constant(edge), last) for edge in self.how.roi)
                walked = self.binary(div, self.binary(mul, x, self.binary(sub, end, start)), steps)
                place, always = self.binary(add, start, walked), False
                if self.how.selector is not Selector.UPPER:
                    single = self.binary(mul, half, self.binary(add, start, end))
        return place if always else self.k.value(arith.SelectOp(is_single, single, place))

    def _aligned(self, walked: SSAValue) -> SSAValue:
        """`walked / (exact - 1)`, 0 for an exact length of 1; exact is the new length before it was rounded down."""
        k, one = self.k, self.constant(1.0)
        exact = self.after
        if self.is_scale_given:
            scaled = self.binary(arith.MulfOp, self.scale, self.before)
            distance = k.value(math.AbsFOp(self.binary(arith.SubfOp, scaled, self.after)))
            is_close = k.value(arith.CmpfOp(distance, self.constant(ROUNDING), "olt"))
            exact = k.value(arith.SelectOp(is_close, self.after, scaled))
        is_single = k.value(arith.CmpfOp(exact, one, "oeq"))
        steps = k.value(arith.SelectOp(is_single, one, self.binary(arith.SubfOp, exact, one)))
        zero = self.constant(0.0)
        return k.value(arith.SelectOp(is_single, zero, self.binary(arith.DivfOp, walked, steps)))


class _ComputedSample(Sample):
    def __init__(self, of: ComputedTaps, place: SSAValue) -> None:
        self.of, self.place = of, place
        k, how = of.k, of.how
        self.outside = None
        if how.coordinate is Coordinate.TF_CROP_AND_RESIZE:
            low = k.value(arith.CmpfOp(place, of.constant(0.0), "olt"))
            high = k.value(arith.CmpfOp(place, of.binary(arith.SubfOp, of.before, of.constant(1.0)), "ogt"))
            self.outside = k.value(arith.OrIOp(low, high))
        if how.kind is ResizeKind.NEAREST:
            self.count = 1
            return
        support = 1.0 if how.kind is ResizeKind.LINEAR else 2.0
        stretched = how.antialias
        one = of.constant(1.0)
        self.stretch = of.binary(arith.MinimumfOp, of.scale, one) if stretched else one
        if stretched:
            reach = k.value(math.FloorOp(of.binary(arith.DivfOp, of.constant(-support), self.stretch)))
            self.reach: SSAValue = k.add(of.whole(reach), 1)
            self.count = k.sub(2, k.mul(self.reach, 2))
        else:
            first = 1 - int(support)
            self.reach, self.count = k.constant(first), k.constant(2 - 2 * first)
        self.base = of.binary(arith.SubfOp, k.value(math.CeilOp(place)), one)
        self.first = k.add(of.whole(self.base), self.reach)
        self.total: SSAValue | None = None
        if stretched or how.exclude_outside:
            self.total = k.reduce(ReduceKind.ADD, [self.count], of.constant(0.0), lambda at: self._weight(at[0]))

    def tap(self, t: SSAValue) -> tuple[SSAValue, SSAValue]:
        k, of = self.of.k, self.of
        if of.how.kind is ResizeKind.NEAREST:
            return k.clamp(of.whole(self._rounded()), of.length), k.constant(1.0, of.wide)
        weight = self._weight(t)
        weight = weight if self.total is None else of.binary(arith.DivfOp, weight, self.total)
        return k.clamp(k.add(self.first, t), of.length), k.scalars(of.wide).cast(weight, f64)

    def _rounded(self) -> SSAValue:
        k, of, half = self.of.k, self.of, self.of.constant(0.5)
        match of.how.rounding:
            case Rounding.HALF_DOWN:
                return k.value(math.CeilOp(of.binary(arith.SubfOp, self.place, half)))
            case Rounding.HALF_UP:
                return k.value(math.FloorOp(of.binary(arith.AddfOp, self.place, half)))
            case Rounding.FLOOR:
                return k.value(math.FloorOp(self.place))
            case Rounding.CEIL:
                return k.value(math.CeilOp(self.place))

    def _weight(self, t: SSAValue) -> SSAValue:
        """The weight of a tap before normalisation."""
        k, of = self.of.k, self.of
        offset = of.number(k.add(self.reach, t))
        distance = of.binary(arith.SubfOp, offset, of.binary(arith.SubfOp, self.place, self.base))
        distance = of.binary(arith.MulfOp, k.value(math.AbsFOp(distance)), self.stretch)
        weight = _linear(of, distance) if of.how.kind is ResizeKind.LINEAR else _cubic(of, distance)
        if not of.how.exclude_outside:
            return weight
        inside = k.compare("ult", k.add(self.first, t), of.length)
        return k.value(arith.SelectOp(inside, weight, of.constant(0.0)))


def _linear(of: ComputedTaps, distance: SSAValue) -> SSAValue:
    return of.binary(arith.MaximumfOp, of.binary(arith.SubfOp, of.constant(1.0), distance), of.constant(0.0))


def _cubic(of: ComputedTaps, d: SSAValue) -> SSAValue:
    """Keys' kernel: ((a + 2) d - (a + 3)) d d + 1 up to 1, a (((d - 5) d + 8) d - 4) up to 2."""
    a, k = of.how.cubic_coeff, of.k
    add, sub, mul = arith.AddfOp, arith.SubfOp, arith.MulfOp
    slope = of.binary(sub, of.binary(mul, of.constant(a + 2), d), of.constant(a + 3))
    near = of.binary(add, of.binary(mul, of.binary(mul, slope, d), d), of.constant(1.0))
    curve = of.binary(add, of.binary(mul, of.binary(sub, d, of.constant(5.0)), d), of.constant(8.0))
    far = of.binary(mul, of.binary(sub, of.binary(mul, curve, d), of.constant(4.0)), of.constant(a))
    is_near = k.value(arith.CmpfOp(d, of.constant(1.0), "ole"))
    is_far = k.value(arith.CmpfOp(d, of.constant(2.0), "olt"))
    return k.value(arith.SelectOp(is_near, near, k.value(arith.SelectOp(is_far, far, of.constant(0.0)))))
