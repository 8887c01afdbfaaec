"""Depthwise convolution with channels last: vectors along the channels, several neighbouring results per thread.

parallel (n, h, block of columns, c) {
  for each row of the window { for each column that the block reads { load x; multiply it with each weight that
  meets it } }
  epilogue, store for each column of the block
}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.kernel.core import LoadOp
from mlirt.dialects.symbolic import ceil_div, product
from mlirt.dialects.tensor_types import dims, element_of, is_float, rank
from mlirt.passes.lowering.loop_nest import Affine, Nest, NestCode, affine, collapse
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.rows import whole
from mlirt.passes.lowering.trt_to_fused.scalar_builder import scalar_type
from mlirt.passes.lowering.typical_sizes import typical, typical_values

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20

_CHANNEL, _ROW = 1, 2
_LONGEST = 7  # columns of a window
_THREADS = 32 * 1024  # that a launch should have, with eight channels each
_LANES = 8


@dataclass(frozen=True)
class Window:
    """The window of a convolution of images; signals are images of one row."""

    op: ConvolutionOp
    columns: int
    """Neighbouring results of a thread."""

    @property
    def last(self) -> int:
        return rank(self.op.output.type) - 1

    @property
    def has_rows(self) -> bool:
        return self.last > _ROW

    @property
    def taps(self) -> int:
        size = dims(self.op.kernel.type)[-1]
        assert isinstance(size, int)
        return size

    def meets(self, offset: int) -> list[tuple[int, int]]:
        """(result, tap) of the products with the input column `offset` columns after the first one."""
        stride, dilation, _, _ = self.op.spatial()[-1]
        return [
            (result, tap)
            for result in range(self.columns)
            for tap in range(self.taps)
            if result * stride + tap * dilation == offset
        ]

    def offsets(self) -> list[int]:
        """The input columns that a thread reads, from the first one on."""
        stride, dilation, _, _ = self.op.spatial()[-1]
        reach = (self.columns - 1) * stride + (self.taps - 1) * dilation
        return [offset for offset in range(reach + 1) if self.meets(offset)]


def lower(op: Operation, lowering: Lowering) -> bool:
    assert isinstance(op, ConvolutionOp)
    if not _applies(op, lowering):
        return False
    window = Window(op, _columns(op, lowering))
    _Depthwise(window, lowering).write()
    return True


def _applies(op: ConvolutionOp, lowering: Lowering) -> bool:
    weights, places = dims(op.kernel.type), lowering.placements
    groups, channels = op.groups.value.data, dims(op.input.type)[_CHANNEL]
    if op.transposed.value.data or not groups == channels == weights[0] or weights[1] != 1 or groups == 1:
        return False
    if rank(op.output.type) not in (3, 4) or not isinstance(weights[-1], int) or weights[-1] > _LONGEST:
        return False
    if accumulator_type(op.epilogue) != (f32 if is_float(element_of(op.input.type)) else i32):
        return False
    known = lowering.constant_array(op.kernel) is not None
    return known and all(places[value].strides[_CHANNEL] == 1 for value in (op.input, op.output))


def _columns(op: ConvolutionOp, lowering: Lowering) -> int:
    """Results per thread: more of them share what they read, fewer keep more threads busy."""
    results = typical(product(dims(op.output.type)), typical_values(lowering.block)) // _LANES
    stride = op.spatial()[-1][0]
    columns = 4 if stride == 1 else 2
    while columns > 1 and (results < columns * _THREADS or dims(op.output.type)[-1] == 1):
        columns //= 2
    return columns


class _Depthwise:
    """The kernel of one convolution."""

    def __init__(self, window: Window, lowering: Lowering) -> None:
        op = window.op
        self.window, self.op, places = window, op, lowering.placements
        self.sums = accumulator_type(op.epilogue)
        self.k = k = lowering.kernel("depthwise")
        space = dims(op.output.type)
        spatial = frozenset(range(_ROW, len(space)))
        steps = tuple(0 if axis in spatial else step for axis, step in enumerate(places[op.input].strides))
        extras = [
            affine(value, places[value], one, len(space)) for value, one in zip(op.extras, op.access, strict=True)
        ]
        nest = Nest.of(space, [Affine(op.input, steps), *extras, whole(op.output, lowering)]).ordered(-1)
        self.code = NestCode(k, collapse(nest, frozenset({_CHANNEL, *spatial})))
        array = lowering.constant_array(op.kernel)
        assert array is not None
        taps = array.reshape(array.shape[0], -1).T.copy()
        self.weights = k.weights(taps, "taps")
        self.channels = int(array.shape[0])
        self.sizes = {axis: k.size(dims(op.input.type)[axis]) for axis in spatial}
        self.steps = {axis: k.strides(op.input)[axis] for axis in spatial}
        self.width = k.size(space[window.last])
        self.place = self.code.nest.groups.index((window.last,))

    def write(self) -> None:
        k, window = self.k, self.window
        extents = self.code.extents()
        whole_blocks = extents[self.place]
        extents[self.place] = ceil_div(whole_blocks, window.columns)
        with k.parallel(extents) as loops:
            first = k.mul(loops[self.place], window.columns)
            totals = self._rows(loops, first)
            for result, total in enumerate(totals):
                at = [*loops]
                at[self.place] = k.add(first, result)
                fits = isinstance(whole_blocks, int) and whole_blocks % window.columns == 0
                if fits or result == 0:
                    self._finish(at, total)
                else:
                    inside = k.compare("slt", at[self.place], self.width)
                    k.when(inside, lambda at=at, total=total: self._finish(at, total))
        k.finish(self.op)

    def _rows(self, loops: Sequence[SSAValue], first: SSAValue) -> list[SSAValue]:
        """The sums of a block of columns."""
        k, op = self.k, self.op
        zeros = [k.constant(0, self.sums)] * self.window.columns
        if not self.window.has_rows:
            return self._row(loops, first, k.constant(0), None, zeros)
        stride, dilation, pre, _ = op.spatial()[0]
        start = k.sub(k.mul(self.code.original(_ROW, loops), stride), pre)

        def step(tap: SSAValue, totals: list[SSAValue]) -> list[SSAValue]:
            return self._row(loops, first, tap, k.add(start, k.mul(tap, dilation)), totals)

        return k.loop(dims(op.kernel.type)[2], zeros, step)

    def _row(
        self, loops: Sequence[SSAValue], first: SSAValue, tap: SSAValue, row: SSAValue | None, totals: list[SSAValue]
    ) -> list[SSAValue]:
        """Add the products with one row of the input."""
        k, op, window = self.k, self.op, self.window
        stride, _, pre, _ = op.spatial()[-1]
        start = k.sub(k.mul(first, stride), pre)
        inside = None if row is None else k.compare("ult", row, self.sizes[_ROW])
        totals = list(totals)
        weights = [self._weight(loops, tap, number) for number in range(window.taps)]
        for offset in window.offsets():
            column = k.add(start, offset)
            more = [] if row is None else [(row, self.steps[_ROW])]
            more = [*more, (column, self.steps[window.last])]
            valid = k.both(inside, k.compare("ult", column, self.sizes[window.last]))
            element = element_of(op.input.type)
            outside = k.constant(op.padding_value.value.data, scalar_type(element))
            pixel = k.guarded(valid, lambda more=more: k.ready(self.code.load(0, loops, more)), outside)
            wide = k.scalars(self.sums).cast(pixel, element)
            for result, number in window.meets(offset):
                s = k.scalars(self.sums)
                totals[result] = s.add(totals[result], s.mul(wide, weights[number]))
        return totals

    def _weight(self, loops: Sequence[SSAValue], tap: SSAValue, number: int) -> SSAValue:
        k = self.k
        line = k.add(k.mul(tap, self.window.taps), number)
        channel = self.code.original(_CHANNEL, loops)
        loaded = k.value(LoadOp(self.weights, [line, channel], [self.channels, 1]))
        return k.scalars(self.sums).cast(k.ready(loaded), element_of(self.op.kernel.type))

    def _finish(self, at: Sequence[SSAValue], total: SSAValue) -> None:
        """The epilogue of one result."""
        k, code, count = self.k, self.code, len(self.op.extras)
        scalars = [k.typed(total, self.sums), *(code.load(1 + position, at) for position in range(count))]
        indices = [code.original(axis, at) if axis else k.constant(0) for axis in range(rank(self.op.output.type))]
        (value,) = k.inline(self.op.epilogue, scalars, indices)
        code.store(value, 1 + count, at)


__all__ = ["lower"]
