"""Depthwise convolution on a GPU: several neighbouring results per thread, which share what they read.

parallel (n, h, block of columns, c) {
  for each row of the window { for each column that the block reads { load x; multiply it with each weight that
  meets it } }
  epilogue, store for each column of the block
}

That is so where channels are innermost, and the loop over them becomes vectors. In planes, rows and columns change
their parts: neighbouring threads have neighbouring columns, and each a block of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.scalar_builder import scalar_type
from mlirt.dialects.symbolic import ceil_div, product
from mlirt.dialects.tensor_types import dims, element_of, is_float, rank
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.convolution.cuda.depthwise_nest import CHANNEL, ROW, depthwise_nest
from mlirt.kernels.lib.builder.kernel_builder import Stride
from mlirt.kernels.lib.epilogue import store_finished
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.words import cast, constant, extent, is_inside, parallel, static_range, strided, widened
from mlirt.kernels.lib.loops.loop_nest import NestCode
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20

_MAX_WINDOW = 7  # of a window, along the results of a thread
_THREADS = 2  # times those that a device should have at least: that a launch should have
_LANES = 8


@dataclass(frozen=True)
class Window:
    """The window of a convolution of images or signals; `along` is the axis of the results of a thread."""

    op: ConvolutionOp
    along: int
    results: int
    """Neighbouring results of a thread."""

    @property
    def across(self) -> int | None:
        """The other axis; signals have none."""
        last = rank(self.op.output.type) - 1
        return None if last == ROW else ROW + last - self.along

    def taps(self, axis: int) -> int:
        size = dims(self.op.kernel.type)[axis]
        assert isinstance(size, int)
        return size

    def meets(self, offset: int) -> list[tuple[int, int]]:
        """(result, tap) of the products with the input cell `offset` cells after the first one."""
        stride, dilation, _, _ = self.op.spatial()[self.along - ROW]
        return [
            (result, tap)
            for result in range(self.results)
            for tap in range(self.taps(self.along))
            if result * stride + tap * dilation == offset
        ]

    def offsets(self) -> list[int]:
        """The input cells that a thread reads along its results, from the first one on."""
        stride, dilation, _, _ = self.op.spatial()[self.along - ROW]
        reach = (self.results - 1) * stride + (self.taps(self.along) - 1) * dilation
        return [offset for offset in range(reach + 1) if self.meets(offset)]


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    along = _along(op, lowering)
    if along is None or not _applies(op, along, lowering):
        return False
    window = Window(op, along, _results(op, along, lowering))
    _Depthwise(window, lowering).write()
    return True


def _along(op: ConvolutionOp, lowering: Lowering) -> int | None:
    """The axis along which a thread has results: never that of neighbours in memory."""
    places, last = lowering.placements, rank(op.output.type) - 1
    for inner, along in ((CHANNEL, last), (last, ROW)):
        if inner != along and all(places[value].strides[inner] == 1 for value in (op.input, op.output)):
            return along
    return None


def _applies(op: ConvolutionOp, along: int, lowering: Lowering) -> bool:
    weights = dims(op.kernel.type)
    groups, channels = op.groups.value.data, dims(op.input.type)[CHANNEL]
    if op.transposed.value.data or not groups == channels == weights[0] or weights[1] != 1 or groups == 1:
        return False
    longest = weights[along]
    if rank(op.output.type) not in (3, 4) or not isinstance(longest, int) or longest > _MAX_WINDOW:
        return False
    if accumulator_type(op.epilogue) != (f32 if is_float(element_of(op.input.type)) else i32):
        return False
    return lowering.known(op.kernel) is not None


def _results(op: ConvolutionOp, along: int, lowering: Lowering) -> int:
    """Results per thread: more of them share what they read, fewer keep more threads busy."""
    lanes = _LANES if lowering.placements[op.output].strides[CHANNEL] == 1 else 1
    elements = typical(product(dims(op.output.type)), typical_values(lowering.block)) // lanes
    stride = op.spatial()[along - ROW][0]
    results = 4 if stride == 1 else 2
    threads = _THREADS * lowering.target.gpu.moves.threads
    while results > 1 and (elements < results * threads or dims(op.output.type)[along] == 1):
        results //= 2
    return results


def _taps(by_tap: bool, weights: Array) -> Array:
    """`[channel, tap]`, or the other way round."""
    taps = weights.reshape(weights.shape[0], -1)
    return taps.T.copy() if by_tap else taps


class _Depthwise:
    """The kernel of one convolution."""

    def __init__(self, window: Window, lowering: Lowering) -> None:
        op = window.op
        self.window, self.op, places = window, op, lowering.placements
        self.accumulator_type = accumulator_type(op.epilogue)
        self.k = k = lowering.kernel("depthwise")
        self.code = NestCode(k, depthwise_nest(op, lowering))
        # Neighbouring threads read neighbouring weights, or the same one.
        by_tap = places[op.output].strides[CHANNEL] == 1
        packed = lowering.packed(op.kernel, partial(_taps, by_tap))
        self.weights = k.weights(packed, "taps")
        self.weight_steps = (packed.array.shape[1], 1) if by_tap else (1, packed.array.shape[1])
        spatial = range(ROW, rank(op.output.type))
        self.sizes = {axis: k.size(dims(op.input.type)[axis]) for axis in spatial}
        self.steps = {axis: k.strides(op.input)[axis] for axis in spatial}
        self.width = k.size(dims(op.output.type)[window.along])
        self.place = self.code.nest.groups.index((window.along,))

    def write(self) -> None:
        build(self.k, self._write)
        self.k.finish(self.op)

    @kernel
    def _write(self) -> None:
        results, extents = self.window.results, self.code.extents()
        length = extents[self.place]
        extents[self.place] = ceil_div(length, results)
        fits = isinstance(length, int) and length % results == 0
        for loops in parallel(extents):
            first = loops[self.place] * results
            totals = self._accumulators(loops, first)
            for result, total in enumerate(totals):
                at = [*loops]
                at[self.place] = first + result
                if result == 0 or fits or at[self.place] < self.width:
                    store_finished(self.op.epilogue, self.code, 1, total, at)

    @kernel
    def _accumulators(self, loops: Sequence[Value], first: Value) -> list[Value]:
        """The accumulators of a block of results."""
        op, across = self.op, self.window.across
        totals = [constant(0, self.accumulator_type)] * self.window.results
        if across is None:
            return self._line(loops, first, None, None, totals)
        stride, dilation, pre, _ = op.spatial()[across - ROW]
        start = value_of(self.code.original(across, loops)) * stride - pre
        for tap in range(extent(dims(op.kernel.type)[across])):
            totals = self._line(loops, first, value_of(tap), start + tap * dilation, totals)
        return totals

    @kernel
    def _line(
        self, loops: Sequence[Value], first: Value, tap: Value | None, line: Value | None, totals: Sequence[Value]
    ) -> list[Value]:
        """Add the products with one line of the input, that of a tap across it."""
        op, window, across, element = self.op, self.window, self.window.across, element_of(self.op.input.type)
        stride, _, pre, _ = op.spatial()[window.along - ROW]
        start = first * stride - pre
        inside, more = True, list[tuple[SSAValue, Stride]]()
        if across is not None and line is not None:
            inside, more = is_inside(line, self.sizes[across]), [(line, self.steps[across])]
        accumulators = list(totals)
        weights = [self._weight(loops, tap, number) for number in static_range(window.taps(window.along))]
        for offset in window.offsets():
            cell = start + offset
            pixel = constant(op.padding_value.value.data, scalar_type(element))
            if inside and is_inside(cell, self.sizes[window.along]):
                pixel = self.k.ready(self.code.load(0, loops, [*more, (cell, self.steps[window.along])]))
            wide = cast(pixel, element, self.accumulator_type)
            for result, number in window.meets(offset):
                accumulators[result] = accumulators[result] + wide * weights[number]
        return accumulators

    @kernel
    def _weight(self, loops: Sequence[Value], across: Value | None, along: int) -> Value:
        """The weight of a tap."""
        last, tap = rank(self.op.output.type) - 1, along
        if across is not None:
            taps = self.window.taps(last)
            tap = across * taps + along if self.window.along == last else across + along * taps
        channel, weights = self.code.original(CHANNEL, loops), strided(self.weights, *self.weight_steps)
        return widened(weights[tap, channel], self.accumulator_type)


__all__ = ["lower"]
