"""Depthwise convolution on a GPU where images lie in planes: a thread has neighbouring columns of some rows.

parallel (n, c, block of rows, block of columns) {
  for each line of the input that the rows need {
    load its cells together; multiply them with each weight that meets them
  }
  for each row { epilogue; store the columns together }
}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32

from mlirt.dialects import symbolic
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.scalar_builder import scalar_type
from mlirt.dialects.symbolic import product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_float, rank
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.convolution.cuda.depthwise_nest import CHANNEL, ROW, depthwise_nest
from mlirt.kernels.lib.cuda.thread_rows.row_cells import RowCells, RowReader, row_cells
from mlirt.kernels.lib.cuda.thread_rows.row_results import RowResults
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple, widest_access
from mlirt.kernels.lib.language import Index, Value, build, kernel
from mlirt.kernels.lib.language.simt_words import Access, element_at, load_fragment
from mlirt.kernels.lib.language.words import ceil_div, constant, extent, is_inside, parallel, static_range, widened
from mlirt.kernels.lib.loops.loop_nest import NestCode
from mlirt.kernels.lib.nests.taps import Axis
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 25

_VECTOR_BYTES = 16  # bytes of a vector of results
_MAX_COLUMNS, _MAX_PRODUCTS = 8, 450  # that a thread has
_THREADS = 2  # times those that a device should have at least: that a launch should have


@dataclass(frozen=True)
class Block:
    """The results of a thread: `rows` of as many columns as `cells` says; signals have one row."""

    rows: int
    cells: RowCells
    across: Axis | None

    def lines(self) -> list[int]:
        """The lines of the input that a thread reads, from the first one on."""
        if self.across is None:
            return [0]
        stride, dilation = self.across.stride, self.across.dilation
        taps = range(self.across.known_size)
        return sorted({row * stride + tap * dilation for row in range(self.rows) for tap in taps})

    def meets(self, line: int) -> list[tuple[int, int]]:
        """(row, tap) of the products with a line."""
        if self.across is None:
            return [(0, 0)]
        stride, dilation, taps = self.across.stride, self.across.dilation, range(self.across.known_size)
        return [(row, tap) for row in range(self.rows) for tap in taps if row * stride + tap * dilation == line]

    def products(self) -> int:
        """Multiplications of a thread."""
        across = 1 if self.across is None else self.across.known_size
        return self.rows * across * self.cells.results * self.cells.axis.known_size


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    block = _block(op, lowering)
    if block is None:
        return False
    _Depthwise(op, block, lowering).write()
    return True


def _block(op: ConvolutionOp, lowering: Lowering) -> Block | None:
    """The results of a thread; None where the op is no depthwise convolution of planes that fit vectors."""
    weights, channels, last = dims(op.kernel.type), dims(op.input.type)[CHANNEL], rank(op.output.type) - 1
    if op.transposed.value.data or not op.groups.value.data == channels == weights[0] or weights[1] != 1:
        return None
    element = element_of(op.output.type)
    floats = is_float(element_of(op.input.type)) and is_float(element) and accumulator_type(op.epilogue) == f32
    sizes = all(isinstance(size, int) for size in weights)
    if last not in (ROW, ROW + 1) or not floats or not sizes or lowering.known(op.kernel) is None:
        return None
    axes = [
        Axis(weights[axis], stride, dilation, pre, dims(op.input.type)[axis], dims(op.output.type)[axis])
        for axis, (stride, dilation, pre, _) in enumerate(op.spatial(), ROW)
    ]
    steps = lowering.placements[op.output].strides
    if steps[last] != 1:
        return None
    widest = min(_MAX_COLUMNS, _VECTOR_BYTES // byte_width(element), widest_access(op.output, steps[:last], lowering))
    results = typical(product(dims(op.output.type)), typical_values(lowering.block))
    threads = _THREADS * lowering.target.gpu.moves.threads
    while widest > 1 and results < widest * threads:
        widest //= 2
    cells = row_cells(op.input, last, axes[-1], widest, lowering)
    if cells is None:
        return None
    across = axes[0] if len(axes) > 1 else None
    rows = 1 if across is None else 4 if across.stride == 1 else 2
    while rows > 1 and (
        results < rows * cells.results * threads or Block(rows, cells, across).products() > _MAX_PRODUCTS
    ):
        rows //= 2
    found = Block(rows, cells, across)
    return found if found.products() <= _MAX_PRODUCTS else None


def _taps(weights: Array) -> Array:
    return weights.reshape(weights.shape[0], -1).astype("float32")


class _Depthwise:
    """The kernel of one convolution."""

    def __init__(self, op: ConvolutionOp, block: Block, lowering: Lowering) -> None:
        self.op, self.block = op, block
        self.k = k = lowering.kernel("depthwise")
        self.code = NestCode(k, depthwise_nest(op, lowering))
        groups = self.code.nest.groups
        self.row_loop = groups.index((ROW,)) if block.across is not None else None
        self.column_loop = groups.index((rank(op.output.type) - 1,))
        self.results = RowResults(self.code, self.column_loop, block.cells.results, op.epilogue, lowering)
        self.reader = RowReader(k, block.cells, self.code.pointer(0))
        packed = lowering.packed(op.kernel, _taps)
        self.taps = packed.array.shape[1]
        self.weights = k.weights(packed, "taps")
        self.line_step = k.strides(op.input)[ROW] if block.across is not None else 0

    def write(self) -> None:
        build(self.k, self._write)
        self.k.finish(self.op)

    @kernel
    def _write(self) -> None:
        rows, columns, extents = self.block.rows, self.block.cells.results, self.code.extents()
        extents[self.column_loop] = symbolic.floor_div(extents[self.column_loop], columns)
        height = 1 if self.row_loop is None else extents[self.row_loop]
        if self.row_loop is not None:
            extents[self.row_loop] = ceil_div(height, rows)
        for loops in parallel(extents):
            at = [*loops]
            at[self.column_loop] = loops[self.column_loop] * columns
            first = 0 if self.row_loop is None else loops[self.row_loop] * rows
            totals = self._accumulators(loops, first)
            for row in static_range(rows):
                here = [*at]
                if self.row_loop is not None:
                    here[self.row_loop] = first + row
                if row == 0 or is_multiple(height, rows) or first + row < extent(height):
                    self.results.store(here, totals[row])

    @kernel
    def _accumulators(self, loops: Sequence[Value], first: Index) -> list[list[Value]]:
        """The accumulators of each column of each row."""
        block, cells, size = self.block, self.block.cells, self.block.cells.axis.known_size
        weights, zero = self._weights(loops), constant(0, f32)
        totals = [[zero for _ in range(cells.results)] for _ in range(block.rows)]
        loaded = [self._line(loops, first, line) for line in block.lines()]
        for line, found in zip(block.lines(), loaded, strict=True):
            wide = {number: widened(found[number], f32) for number in cells.numbers()}
            for row, tap in block.meets(line):
                for column in static_range(cells.results):
                    for along in static_range(size):
                        totals[row][column] += wide[cells.number(column, along)] * weights[tap * size + along]
        return totals

    @kernel
    def _line(self, loops: Sequence[Value], first: Index, number: int) -> dict[int, Value]:
        """The cells of a line; those outside of the input have the padding's value."""
        across, before, inside = self.block.across, self.code.linear(0, loops), True
        if across is not None:
            line = first * across.stride - extent(across.pre) + number
            inside = across.stays_inside(self.block.rows) or is_inside(line, extent(across.length))
            before = before + line * self.line_step
        found = self.reader.read(before, inside, loops[self.column_loop])
        value = self.op.padding_value.value.data
        outside = constant(value, scalar_type(element_of(self.op.input.type)))
        return {cell: element if valid or not value else outside for cell, (element, valid) in found.items()}

    @kernel
    def _weights(self, loops: Sequence[Value]) -> list[Value]:
        """The weights of the channel."""
        index = self.code.original(CHANNEL, loops) * self.taps
        loaded = load_fragment(self.weights, index, Access(static_range(self.taps)))
        return [element_at(loaded, tap) for tap in static_range(self.taps)]


__all__ = ["lower"]
