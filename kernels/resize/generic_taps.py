"""Where the samples of a resized axis look in the input, and with which weights: from tables, or computed in the
kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, f64, i64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.interpolation import ROUNDING, Coordinate, Resampling, ResizeKind, Rounding, Selector
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.builder.kernel_builder import Extent, Stride
from mlirt.kernels.lib.language import Value, builder, kernel, value_of
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.values import bool_of
from mlirt.kernels.lib.language.words import (
    Box,
    Strided,
    cast,
    ceil,
    clamp,
    constant,
    extent,
    floor,
    index_of,
    integer_of,
    is_inside,
    place,
    reduction,
    stride,
)


@dataclass(frozen=True, eq=False)
class Sample:
    """One sample of an axis: how many input elements it weighs, whether it lies outside (None: never), and the input
    index and the weight of a tap.
    """

    count: Extent
    outside: bool | None
    tap: Callable[[Value], tuple[Value, Value]]


Taps: TypeAlias = Callable[[Value], Sample]
"""One resized axis: the sample at a position of the result."""


@kernel
def table_taps(how: Resampling, before: int, after: int, scale: float, wide: Attribute) -> Taps:
    """Indices and weights of all samples, computed when the engine is built."""
    length, (indices, weights, beyond, count, step) = extent(before), _tables(how, before, after, scale, wide)

    def at(position: Value) -> Sample:
        def tap(t: Value) -> tuple[Value, Value]:
            index = index_of(Strided(indices, [step, 1])[position, t])
            return clamp(index, length), Strided(weights, [step, 1])[position, t]

        return Sample(count, None if beyond is None else bool_of(beyond[position]), tap)

    return at


def _tables(
    how: Resampling, before: int, after: int, scale: float, wide: Attribute
) -> tuple[SSAValue, SSAValue, Value | None, Value, Stride]:
    """Arrays of indices, of weights, and of what lies outside; the number of taps, as a length and as a stride."""
    import numpy as np

    from mlirt.dialects.tensor_types import numpy_dtype

    k, (index, weights), beyond = builder(), how.taps(before, after, scale), how.outside(before, after, scale)
    count, step = extent(index.shape[1]), stride(index.shape[1])
    index_memory = k.weights(np.ascontiguousarray(index, np.int64), "resize.index")
    weight_memory = k.weights(np.ascontiguousarray(weights, numpy_dtype(wide)), "resize.weights")
    outside = value_of(k.weights(beyond, "resize.outside")) if beyond.any() else None
    return index_memory, weight_memory, outside, count, step


@kernel
def computed_taps(how: Resampling, before: Dim, after: Dim, scale: float | None, wide: Attribute) -> Taps:
    """An axis whose lengths are known only at run time: the formulas of `interpolation.Resampling`, in double
    precision.
    """
    length, size = extent(before), extent(after)
    old, new = _number(length), _number(size)
    ratio = new / old if scale is None else value_of(builder().scalar(scale, f64))
    return _ComputedTaps(how, wide, length, size, old, new, ratio, scale is not None).at


def _number(index: SSAValue) -> Value:
    """A place or a length as a float."""
    return emit(arith.SIToFPOp(integer_of(index, i64), f64))


def _whole(number: SSAValue) -> Value:
    """A float without fraction as an index."""
    return emit(arith.IndexCastOp(emit(arith.FPToSIOp(number, i64)), IndexType()))


@dataclass(frozen=True, eq=False)
class _ComputedTaps:
    """`length` and `size` are the old length and the new one, `old` and `new` the same as floats."""

    how: Resampling
    wide: Attribute
    length: Value
    size: Value
    old: Value
    new: Value
    scale: Value
    is_scale_given: bool

    @kernel
    def at(self, position: Value) -> Sample:
        """The sample at a position of the result."""
        how, wide, at = self.how, self.wide, self.place_of(position)
        outside = None
        if how.coordinate is Coordinate.TF_CROP_AND_RESIZE:
            outside = at < 0.0 or at > self.old - 1.0
        if how.kind is ResizeKind.NEAREST:
            return Sample(
                1, outside, lambda t: (clamp(_whole(self.rounded(at)), self.length), constant(1.0, self.wide))
            )
        support = 1 if how.kind is ResizeKind.LINEAR else 2
        stretch, reach, count = 1.0, place(1 - support), place(2 * support)
        if how.antialias:
            stretch = min(self.scale, 1.0)
            reach = _whole(floor(constant(-float(support), f64) / stretch)) + 1
            count = 2 - reach * 2
        base, zero = ceil(at) - 1.0, constant(0.0, f64)
        first = _whole(base) + reach

        def weight(t: Value) -> Value:
            """The weight of a tap before normalisation."""
            distance = abs(_number(reach + t) - (at - base)) * stretch
            found = max(1.0 - distance, zero) if how.kind is ResizeKind.LINEAR else _cubic(distance, how.cubic_coeff)
            return (found if is_inside(first + t, self.length) else zero) if how.exclude_outside else found

        is_normalized = how.antialias or how.exclude_outside
        total = reduction(ReduceKind.ADD, Box(count), zero, weight) if is_normalized else None

        def tap(t: Value) -> tuple[Value, Value]:
            share = weight(t) if total is None else weight(t) / total
            return clamp(first + t, self.length), cast(share, f64, wide)

        return Sample(count, outside, tap)

    @kernel
    def place_of(self, position: Value) -> Value:
        """The real-valued position of a sample in the input."""
        x, how, coordinate = _number(position), self.how, self.how.coordinate
        last, is_single, single = self.old - 1.0, self.size == 1, constant(0.0, f64)
        scaled = (x + 0.5) / self.scale
        is_apart = how.selector is Selector.UPPER
        if coordinate is Coordinate.ASYMMETRIC:
            at = x / self.scale
        elif coordinate in (Coordinate.HALF_PIXEL, Coordinate.PYTORCH_HALF_PIXEL):
            at, is_apart = scaled - 0.5, is_apart or coordinate is Coordinate.PYTORCH_HALF_PIXEL
        elif coordinate is Coordinate.TF_HALF_PIXEL_FOR_NN:
            at = scaled
        elif coordinate is Coordinate.ALIGN_CORNERS:
            at = self.aligned(x * last)
        elif coordinate is Coordinate.HALF_PIXEL_SYMMETRIC:
            at = self.old * 0.5 * (1.0 - self.new / (self.scale * self.old)) + scaled - 0.5
        else:
            assert coordinate is Coordinate.TF_CROP_AND_RESIZE
            start, end = [edge * last for edge in how.roi]
            at = start + x * (end - start) / (1.0 if is_single else self.new - 1.0)
            single, is_apart = (single if is_apart else 0.5 * (start + end)), True
        return (single if is_single else at) if is_apart else at

    @kernel
    def aligned(self, walked: Value) -> Value:
        """`walked / (exact - 1)`, 0 for an exact length of 1; exact is the new length before it was rounded down."""
        exact = self.new
        if self.is_scale_given:
            scaled = self.scale * self.old
            exact = self.new if abs(scaled - self.new) < ROUNDING else scaled
        is_single = exact == 1.0
        return constant(0.0, f64) if is_single else walked / (1.0 if is_single else exact - 1.0)

    @kernel
    def rounded(self, at: Value) -> Value:
        """A position as a whole number."""
        if self.how.rounding is Rounding.HALF_DOWN:
            return ceil(at - 0.5)
        if self.how.rounding is Rounding.HALF_UP:
            return floor(at + 0.5)
        return floor(at) if self.how.rounding is Rounding.FLOOR else ceil(at)


@kernel
def _cubic(d: Value, a: float) -> Value:
    """Keys' kernel: ((a + 2) d - (a + 3)) d d + 1 up to 1, a (((d - 5) d + 8) d - 4) up to 2."""
    near = ((a + 2) * d - (a + 3)) * d * d + 1.0
    far = (((d - 5.0) * d + 8.0) * d - 4.0) * a
    return near if d <= 1.0 else far if d < 2.0 else constant(0.0, f64)
