"""Pooling on a GPU where windows overlap: a thread has a strip of rows of the result and reads each line once.

parallel (n, c, block of rows, column) {
  for each other tap of the window { for each line of the input that the strip reads { combine with the line's } }
  for each row of the strip { combine its lines; divide; epilogue; store }
}

Where channels are innermost, the loops over them become vectors. A maximum reads the nearest cell of the input in the
place of one outside, which is in the window as well: no load waits for a condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, prod
from typing import TypeAlias

from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.symbolic import product
from mlirt.dialects.tensor_types import byte_width, channels, dims, element_of
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.builder.kernel_builder import Stride
from mlirt.kernels.lib.epilogue import store_finished
from mlirt.kernels.lib.language import Index, Value, build, kernel, value_of
from mlirt.kernels.lib.language.words import ceil_div, clamp, extent, parallel, static_range
from mlirt.kernels.lib.loops.loop_nest import NestCode, collapse
from mlirt.kernels.lib.loops.scalar_regions import indices_in
from mlirt.kernels.lib.nests.taps import AxisCode
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.window.combination import Combination, has_nearest, strip_lines
from mlirt.kernels.window.cuda.means import Means
from mlirt.kernels.window.generic import window_axes, window_nest

# Where a tap reads along an axis, and whether that is inside of the input.
_Cell: TypeAlias = tuple[Value, bool]

OPS = (WindowOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_CHANNEL = 1
_VECTOR_BYTES = 16  # bytes of a vector of channels
_MAX_LINES, _MAX_VALUES = 16, 64  # that a thread holds
_MAX_READS = 24  # that follow one another without a loop, so that all of them can be under way
_THREADS = 2  # times those that a device should have at least: that a launch should have


def lower(op: WindowOp, lowering: Lowering) -> bool:
    rows = _rows(op, lowering)
    if rows is None:
        return False
    _Strips(op, rows, lowering).write()
    return True


def _rows(op: WindowOp, lowering: Lowering) -> int | None:
    """Rows of a strip: more of them share what they read, fewer keep more threads busy; None where it does not pay."""
    first, steps = window_axes(op)[0], lowering.placements[op.output].strides
    overlaps = isinstance(first.size, int) and (first.size - 1) * first.dilation >= first.stride
    if not overlaps or channels(op.input.type) is not None or steps[op.axes()[0]] == 1:
        return None
    vector = _VECTOR_BYTES // byte_width(element_of(op.output.type)) if steps[_CHANNEL] == 1 else 1
    results = typical(product(dims(op.output.type)), typical_values(lowering.block)) // vector
    rows = 4 if first.stride == 1 else 2
    most = min(_MAX_LINES, _MAX_VALUES // vector)
    threads = _THREADS * lowering.target.gpu.moves.threads
    while rows > 1 and (results < rows * threads or len(strip_lines(first, rows)) > most):
        rows //= 2
    return rows if len(strip_lines(first, rows)) <= _MAX_LINES else None


class _Strips:
    """The kernel of one pooling layer."""

    def __init__(self, op: WindowOp, rows: int, lowering: Lowering) -> None:
        self.op, self.rows = op, rows
        self.k = k = lowering.kernel("window")
        self.axes = window_axes(op)
        self.parts = Combination(k, op)
        self.code = NestCode(k, collapse(window_nest(op, lowering), indices_in(op.epilogue) | set(op.axes())))
        self.arithmetic = [AxisCode(k, axis, 1 if number else rows) for number, axis in enumerate(self.axes)]
        self.means = Means(k, op, self.axes, self.arithmetic)
        self.steps: list[Stride] = [k.strides(op.input)[axis] for axis in op.axes()]
        self.place = self.code.nest.groups.index((op.axes()[0],))

    def write(self) -> None:
        build(self.k, self._write)
        self.k.finish(self.op)

    @kernel
    def _write(self) -> None:
        extents, place, height = self.code.extents(), self.place, self.axes[0].output
        extents[place] = ceil_div(height, self.rows)
        is_whole = isinstance(height, int) and height % self.rows == 0
        for loops in parallel(extents):
            row = loops[place] * self.rows
            others = zip(self.arithmetic[1:], self.op.axes()[1:], strict=True)
            starts = [axis.start(value_of(self.code.original(at, loops))) for axis, at in others]
            starts = [self.arithmetic[0].start(row), *starts]
            lines = self._all_lines(loops, starts)
            for number in static_range(self.rows):
                at = [*loops]
                at[place] = row + number
                if number == 0 or is_whole or at[place] < extent(height):
                    self._finish(at, starts, lines, number)

    @kernel
    def _all_lines(self, loops: Sequence[Value], starts: Sequence[Value]) -> dict[int, Value]:
        """For each line that the strip reads, what the window combines of it."""
        offsets = strip_lines(self.axes[0], self.rows)
        found = self._taps(loops, starts, [], [self.parts.start for _ in offsets])
        return dict(zip(offsets, found, strict=True))

    @kernel
    def _taps(
        self, loops: Sequence[Value], starts: Sequence[Value], cells: Sequence[_Cell], totals: Sequence[Value]
    ) -> Sequence[Value]:
        """What the taps along the axes that have no cell yet add to the lines."""
        axis = len(cells) + 1
        if axis == len(self.axes):
            offsets = strip_lines(self.axes[0], self.rows)
            own = [[self._cell(0, starts[0] + offset, 0), *cells] for offset in offsets]
            return [self._more(total, self._read(loops, one)) for one, total in zip(own, totals, strict=True)]
        about = self.axes[axis]
        is_unrolled = isinstance(about.size, int) and self._reads() <= _MAX_READS
        for tap in static_range(about.known_size) if is_unrolled else range(self.arithmetic[axis].taps):
            totals = self._taps(loops, starts, [*cells, self._cell(axis, starts[axis], tap)], totals)
        return totals

    def _more(self, total: Value, part: Value) -> Value:
        return part if total is self.parts.start else self.parts.of(total, part)

    def _reads(self) -> float:
        """How many elements of the input a thread reads, vectors counted as one."""
        sizes = [axis.size if isinstance(axis.size, int) else inf for axis in self.axes[1:]]
        return len(strip_lines(self.axes[0], self.rows)) * prod(sizes)

    @kernel
    def _cell(self, axis: int, start: Value, tap: Index) -> _Cell:
        """Where a tap reads along an axis, and the condition under which it does."""
        about = self.axes[axis]
        place, inside = self.arithmetic[axis].place(start, tap)
        # Along neighbours in memory a condition keeps each thread at one of them.
        is_free = self.parts.is_max and has_nearest(about) and self.steps[axis] != 1
        if inside is True or not is_free:
            return place, inside
        return clamp(place, extent(about.length)), True

    @kernel
    def _read(self, loops: Sequence[Value], cells: Sequence[_Cell]) -> Value:
        more = [(place, step) for (place, _), step in zip(cells, self.steps, strict=True)]
        value = self.parts.outside
        if all(inside for _, inside in cells):
            value = value_of(self.code.load(0, loops, more))
        return self.parts.part(value)

    @kernel
    def _finish(self, at: Sequence[Value], starts: Sequence[Value], lines: Mapping[int, Value], row: int) -> None:
        """The result of a row of the strip."""
        op, about = self.op, self.axes[0]
        total = self.parts.of(*[lines[row * about.stride + tap * about.dilation] for tap in range(about.known_size)])
        total = self.parts.total(total)
        if op.kind.data is WindowKind.AVERAGE:
            places = [starts[0] + row * about.stride, *starts[1:]]
            (total,) = self.means.of([total], [[self.means.count(axis, at) for axis, at in enumerate(places)]])
        store_finished(op.epilogue, self.code, 1, total, at)


__all__ = ["lower"]
