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
from functools import reduce

from xdsl.ir import SSAValue

from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.symbolic import ceil_div, floor_div, product
from mlirt.dialects.tensor_types import byte_width, channels, dims, element_of, is_bool
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.cuda.thread_rows.row_cells import RowCells, RowReader, row_cells
from mlirt.kernels.lib.cuda.thread_rows.row_results import RowResults
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple, widest_access
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, affine, collapse
from mlirt.kernels.lib.loops.reduction_nest import indices_in
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.loops.taps import AxisCode
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.window.combination import Combination, has_nearest, strip_lines
from mlirt.kernels.window.cuda.means import Means
from mlirt.kernels.window.generic import window_axes

OPS = (WindowOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20

_VECTOR_BYTES = 16  # bytes of a vector of results
_MAX_COLUMNS, _MAX_CELLS, _MAX_PARTS = 8, 96, 600  # that a thread has
_THREADS = 32 * 1024  # that a launch should have


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
    while widest > 1 and results < widest * _THREADS:
        widest //= 2
    cells = row_cells(op.input, along, last, widest, lowering)
    if cells is None:
        return None
    overlaps = (first.size - 1) * first.dilation >= first.stride
    rows = 1 if len(axes) == 1 or not overlaps else 4 if first.stride == 1 else 2
    while rows > 1 and (results < rows * cells.results * _THREADS or not _fits(op, rows, cells)):
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
        self.op, self.block, places, space = op, block, lowering.placements, dims(op.output.type)
        self.k = k = lowering.kernel("window")
        self.parts, self.axes = Combination(k, op), window_axes(op)
        extras = [
            affine(value, places[value], one, len(space)) for value, one in zip(op.extras, op.access, strict=True)
        ]
        steps = whole(op.input, lowering).steps
        kept = tuple(0 if axis in op.axes() else step for axis, step in enumerate(steps))
        needed = indices_in(op.epilogue) | set(op.axes())
        nest = Nest.of(space, [Affine(op.input, kept), *extras, whole(op.output, lowering)]).ordered(-1)
        self.code = NestCode(k, collapse(nest, frozenset(needed)))
        self.arithmetic = [AxisCode(k, axis, 1 if number else block.rows) for number, axis in enumerate(self.axes)]
        self.means = Means(k, op, self.axes, self.arithmetic)
        self.reader = RowReader(k, block.cells, self.code.pointer(0))
        self.line_step = k.strides(op.input)[op.axes()[0]] if len(self.axes) > 1 else 0
        groups = self.code.nest.groups
        self.row_loop = groups.index((op.axes()[0],)) if len(self.axes) > 1 else None
        self.column_loop = groups.index((op.axes()[-1],))
        self.results = RowResults(self.code, self.column_loop, block.cells.results, op.epilogue, lowering)

    def write(self) -> None:
        k, rows, columns = self.k, self.block.rows, self.block.cells.results
        extents = self.code.extents()
        extents[self.column_loop] = floor_div(extents[self.column_loop], columns)
        height = 1 if self.row_loop is None else extents[self.row_loop]
        if self.row_loop is not None:
            extents[self.row_loop] = ceil_div(height, rows)
        with k.parallel(extents) as loops:
            at = [*loops]
            at[self.column_loop] = k.mul(loops[self.column_loop], columns)
            starts = [self.arithmetic[-1].start(k.add(at[self.column_loop], column)) for column in range(columns)]
            if self.row_loop is None:
                self._finish(at, self._line(loops, None, loops[self.column_loop]), None, starts)
            else:
                at[self.row_loop] = first = k.mul(loops[self.row_loop], rows)
                self._strip(loops, at, first, starts, is_multiple(height, rows))
        k.finish(self.op)

    def _strip(
        self, loops: Sequence[SSAValue], at: list[SSAValue], first: SSAValue, starts: Sequence[SSAValue], fits: bool
    ) -> None:
        """The rows of the result from the `first` one on."""
        k, axis, code, row_loop = self.k, self.axes[0], self.arithmetic[0], self.row_loop
        assert row_loop is not None
        start, lines = code.start(first), dict[int, list[SSAValue]]()
        for number in strip_lines(axis, self.block.rows):
            lines[number] = self._line(loops, k.add(start, number), loops[self.column_loop])
        assert isinstance(axis.size, int)
        for row in range(self.block.rows):
            own = [lines[row * axis.stride + tap * axis.dilation] for tap in range(axis.size)]
            here = [*at]
            here[row_loop] = k.add(first, row)

            def finish(own: list[list[SSAValue]] = own, here: list[SSAValue] = here, row: int = row) -> None:
                totals = [reduce(self.parts.of, column) for column in zip(*own, strict=True)]
                self._finish(here, totals, k.add(start, row * axis.stride), starts)

            if fits or row == 0:
                finish()
            else:
                k.when(k.compare("slt", here[row_loop], k.size(axis.output)), finish)

    def _line(self, loops: Sequence[SSAValue], line: SSAValue | None, block: SSAValue) -> list[SSAValue]:
        """What the window of each column combines of a line of the input."""
        k, cells = self.k, self.block.cells
        before = self.code.linear(0, loops)
        inside = None
        if line is not None:
            place, inside = self.arithmetic[0].place(line, k.constant(0))
            if inside is not None and self.parts.is_max and has_nearest(self.axes[0]):
                place, inside = k.clamp(place, k.size(self.axes[0].length)), None
            before = k.add(before, k.mul(place, self.line_step))
        found = self.reader.read(before, inside, block)
        part = {number: self._part(*found[number]) for number in cells.numbers()}
        size = self.axes[-1].size
        assert isinstance(size, int)
        return [
            reduce(self.parts.of, [part[cells.number(column, tap)] for tap in range(size)])
            for column in range(cells.results)
        ]

    def _part(self, element: SSAValue, inside: SSAValue | None) -> SSAValue:
        """A cell as a part of a window; what is outside is zero, which changes no sum."""
        if inside is not None and self.parts.is_max:
            element = self.k.select(inside, element, self.parts.outside)
        return self.parts.part(element)

    def _finish(
        self, at: Sequence[SSAValue], totals: Sequence[SSAValue], start: SSAValue | None, starts: Sequence[SSAValue]
    ) -> None:
        """The results of a row from its combined windows."""
        totals = [self.parts.total(total) for total in totals]
        self.results.store(at, totals if self.parts.is_max else self._mean_of_each(totals, start, starts))

    def _mean_of_each(
        self, totals: Sequence[SSAValue], start: SSAValue | None, starts: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The means of a row from its sums."""
        rows = [] if start is None else [self.means.count(0, start)]
        counts = [self._column_count(column, one) for column, one in enumerate(starts)]
        return self.means.of(totals, [[*rows, count] for count in counts])

    def _column_count(self, column: int, start: SSAValue) -> SSAValue:
        """How many cells of a column's window count in a row: all of them where no thread's window reaches outside."""
        cells, axis = self.block.cells, self.axes[-1]
        assert isinstance(axis.size, int)
        first = cells.number(column, 0)
        if cells.is_inside(first, cells.number(column, axis.size - 1) - first + 1):
            return self.arithmetic[-1].taps
        return self.means.count(len(self.axes) - 1, start)


__all__ = ["lower"]
