"""Pooling on a GPU where images lie in planes: a thread has neighbouring columns of some rows of the result.

parallel (n, c, block of rows, block of columns) {
  for each line of the input that the rows need { load its cells together; combine those of each column's window }
  for each row { combine its lines; divide; epilogue; store the columns together }
}

A maximum reads the nearest line of the input in the place of one outside, which is in the window as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlirt.dialects import symbolic
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.symbolic import product
from mlirt.dialects.tensor_types import byte_width, channels, dims, element_of, is_bool
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.cuda.thread_rows.row_cells import RowCells, RowReader, row_cells
from mlirt.kernels.lib.cuda.thread_rows.row_results import RowResults
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple, widest_access
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.words import ceil_div, clamp, extent, parallel, static_range
from mlirt.kernels.lib.loops.loop_nest import NestCode, collapse
from mlirt.kernels.lib.loops.scalar_regions import indices_in
from mlirt.kernels.lib.nests.taps import AxisCode
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.window.combination import Combination, has_nearest, strip_lines
from mlirt.kernels.window.cuda.means import Means
from mlirt.kernels.window.generic import window_axes, window_nest

OPS = (WindowOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20

_VECTOR_BYTES = 16  # bytes of a vector of results
_MAX_COLUMNS, _MAX_CELLS, _MAX_PARTS = 8, 96, 600  # that a thread has
_THREADS = 2  # times those that a device should have at least: that a launch should have


@dataclass(frozen=True)
class Block:
    """The results of a thread: `rows` of as many columns as `cells` says."""

    rows: int
    cells: RowCells


def lower(op: WindowOp, lowering: Lowering) -> bool:
    block = _block(op, lowering)
    if block is None:
        return False
    _Rows(op, block, lowering).write()
    return True


def _block(op: WindowOp, lowering: Lowering) -> Block | None:
    """The results of a thread; None where neighbours do not lie so that they can be read and written together."""
    axes, element = window_axes(op), element_of(op.output.type)
    first, last, along = axes[0], axes[-1], op.axes()[-1]
    plain = channels(op.input.type) is None and not is_bool(element_of(op.input.type)) and not is_bool(element)
    steps = lowering.placements[op.output].strides
    if not plain or len(axes) > 2 or steps[along] != 1 or not isinstance(first.size, int):
        return None
    others = [step for axis, step in enumerate(steps) if axis != along]
    widest = min(_MAX_COLUMNS, _VECTOR_BYTES // byte_width(element), widest_access(op.output, others, lowering))
    results = typical(product(dims(op.output.type)), typical_values(lowering.block))
    threads = _THREADS * lowering.target.gpu.moves.threads
    while widest > 1 and results < widest * threads:
        widest //= 2
    cells = row_cells(op.input, along, last, widest, lowering)
    if cells is None:
        return None
    overlaps = (first.size - 1) * first.dilation >= first.stride
    rows = 1 if len(axes) == 1 or not overlaps else 4 if first.stride == 1 else 2
    while rows > 1 and (results < rows * cells.results * threads or not _fits(op, rows, cells)):
        rows //= 2
    return Block(rows, cells) if _fits(op, rows, cells) else None


def _fits(op: WindowOp, rows: int, cells: RowCells) -> bool:
    """Whether a thread can hold what it reads, and its code is not too long."""
    first, last = window_axes(op)[0], window_axes(op)[-1]
    lines = len(strip_lines(first, rows)) if len(op.axes()) > 1 else 1
    assert isinstance(last.size, int)
    return lines * len(cells.numbers()) <= _MAX_CELLS and lines * cells.results * last.size <= _MAX_PARTS


class _Rows:
    """The kernel of one pooling layer."""

    def __init__(self, op: WindowOp, block: Block, lowering: Lowering) -> None:
        self.op, self.block = op, block
        self.k = k = lowering.kernel("window")
        self.parts, self.axes = Combination(k, op), window_axes(op)
        needed = indices_in(op.epilogue) | set(op.axes())
        self.code = NestCode(k, collapse(window_nest(op, lowering), frozenset(needed)))
        self.arithmetic = [AxisCode(k, axis, 1 if number else block.rows) for number, axis in enumerate(self.axes)]
        self.means = Means(k, op, self.axes, self.arithmetic)
        self.reader = RowReader(k, block.cells, self.code.pointer(0))
        self.line_step = k.strides(op.input)[op.axes()[0]] if len(self.axes) > 1 else 0
        groups = self.code.nest.groups
        self.row_loop = groups.index((op.axes()[0],)) if len(self.axes) > 1 else None
        self.column_loop = groups.index((op.axes()[-1],))
        self.results = RowResults(self.code, self.column_loop, block.cells.results, op.epilogue, lowering)

    def write(self) -> None:
        build(self.k, self._write)
        self.k.finish(self.op)

    @kernel
    def _write(self) -> None:
        extents, rows, columns = self.code.extents(), self.block.rows, self.block.cells.results
        extents[self.column_loop] = symbolic.floor_div(extents[self.column_loop], columns)
        if self.row_loop is not None:
            extents[self.row_loop] = ceil_div(self.axes[0].output, rows)
        for loops in parallel(extents):
            at = [*loops]
            at[self.column_loop] = loops[self.column_loop] * columns
            starts = [self.arithmetic[-1].start(at[self.column_loop] + column) for column in range(columns)]
            if self.row_loop is None:
                self._finish(at, self._line(loops, None), None, starts)
            else:
                at[self.row_loop] = loops[self.row_loop] * rows
                self._strip(loops, at, self.row_loop, starts)

    @kernel
    def _strip(self, loops: Sequence[Value], at: Sequence[Value], row_loop: int, starts: Sequence[Value]) -> None:
        """Rows of the result from the place `at` on."""
        axis, rows = self.axes[0], self.block.rows
        first, start = at[row_loop], self.arithmetic[0].start(at[row_loop])
        lines = {number: self._line(loops, start + number) for number in strip_lines(axis, rows)}
        for row in static_range(rows):
            own = [lines[row * axis.stride + tap * axis.dilation] for tap in range(axis.known_size)]
            here = [*at]
            here[row_loop] = first + row
            if row == 0 or is_multiple(axis.output, rows) or here[row_loop] < extent(axis.output):
                totals = [self.parts.of(*column) for column in zip(*own, strict=True)]
                self._finish(here, totals, start + row * axis.stride, starts)

    @kernel
    def _line(self, loops: Sequence[Value], line: Value | None) -> list[Value]:
        """What the window of each column combines of a line of the input."""
        cells, before, inside = self.block.cells, value_of(self.code.linear(0, loops)), True
        if line is not None:
            place, inside = self.arithmetic[0].place(line, 0)
            if inside is not True and self.parts.is_max and has_nearest(self.axes[0]):
                place, inside = clamp(place, extent(self.axes[0].length)), True
            before = before + place * self.line_step
        found = self.reader.read(before, inside, loops[self.column_loop])
        part = {number: self._part(*found[number]) for number in cells.numbers()}
        size = self.axes[-1].known_size
        taps = [[cells.number(column, tap) for tap in range(size)] for column in range(cells.results)]
        return [self.parts.of(*[part[number] for number in own]) for own in taps]

    @kernel
    def _part(self, element: Value, inside: bool) -> Value:
        """A cell as a part of a window; what is outside is zero, which changes no sum."""
        return self.parts.part(element if inside or not self.parts.is_max else self.parts.outside)

    @kernel
    def _finish(
        self, at: Sequence[Value], totals: Sequence[Value], start: Value | None, starts: Sequence[Value]
    ) -> None:
        """The results of a row from its combined windows."""
        totals = [self.parts.total(total) for total in totals]
        if not self.parts.is_max:
            rows = [] if start is None else [self.means.count(0, start)]
            counts = [self._column_count(column, one) for column, one in enumerate(starts)]
            totals = self.means.of(totals, [[*rows, count] for count in counts])
        self.results.store(at, totals)

    @kernel
    def _column_count(self, column: int, start: Value) -> Value:
        """How many cells of a column's window count in a row: all of them where no thread's window reaches outside."""
        cells, axis = self.block.cells, self.axes[-1]
        first = cells.number(column, 0)
        if cells.is_inside(first, cells.number(column, axis.known_size - 1) - first + 1):
            return self.arithmetic[-1].taps
        return self.means.count(len(self.axes) - 1, start)


__all__ = ["lower"]
