"""How a block multiplies two tiles in shared memory, and where its threads keep the accumulators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from xdsl.dialects.builtin import f32

from mlirt.dialects.kernel.fragment import OuterProductOp
from mlirt.dialects.kernel.matrix_unit import PACKED, LoadMatrixOp, MmaKind, MmaOp
from mlirt.kernels.lib.cuda.tiles.shape import WarpTile
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemory
from mlirt.kernels.lib.language import Index, Value, kernel
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.simt_words import Access, load_fragment, store_fragment, zeros
from mlirt.kernels.lib.language.words import place, static_range


class Engine(ABC):
    """The multiplication of one tile shape; `left` is rows x depth, `right` depth x columns."""

    def __init__(self, shape: WarpTile, thread: Value) -> None:
        self.shape, self.thread = shape, thread

    @abstractmethod
    def zeros(self) -> Value:
        """Sums of nothing."""

    @abstractmethod
    def multiply(self, accumulators: Value, left: TileMemory, right: TileMemory, stage: Index) -> Value:
        """The accumulators with the products of one stage added."""

    @abstractmethod
    def keep(self, accumulators: Value, results: TileMemory) -> None:
        """Write the accumulators to shared memory, one row of the tile per line."""


QUAD = 4
"""Elements of 4 bytes that one access reads."""


@dataclass(frozen=True)
class Share:
    """The rows (or columns) of a tile that a lane has: `offsets` from the `first` one on, of some `lines` at a time."""

    first: Value
    offsets: list[int]
    lines: int

    @property
    def by_depth(self) -> bool:
        """Whether lines of the tile go along the depth, so that a lane has neighbours of one line."""
        return self.lines == 1

    @kernel
    def line(self, tile: TileMemory, stage: Index, line: Index) -> Value:
        """What a lane has of one line."""
        index = tile.at(stage, line, self.first)
        return load_fragment(tile.buffer, index, Access(self.offsets, wide=True))

    @kernel
    def quad(self, tile: TileMemory, stage: Index, line: Index) -> Value:
        """What a lane has of the lines from one on, all of them in one fragment."""
        index = tile.at(stage, self.first, line)
        offsets = [own * tile.pitch + part for own in self.offsets for part in static_range(QUAD)]
        return load_fragment(tile.buffer, index, Access(offsets, wide=True))


@kernel
def share(count: int, lanes: int, warp: Value, lane: Value, by_depth: bool, together: int = QUAD) -> Share:
    """The share of a lane of a warp; by depth it has so many neighbours `together`."""
    near = together if by_depth else 1
    first = warp * (lanes * count) + lane * near
    offsets = [group * lanes * near + one for group in static_range(count // near) for one in static_range(near)]
    return Share(first, offsets, 1 if by_depth else QUAD)


class MultiplyAdd(Engine):
    """Each thread multiplies a piece of the tile in single precision.

    The lanes of a warp stand in rows and columns. Where an operand lies by depth a lane has quads of neighbours, which
    one access reads; else it has single rows (or columns), of which one access reads four lines of the depth. The
    lowest bit of a lane's number tells rows apart, the next one columns: lanes that differ in one of them read the same
    element of one operand, which the shared memory sends to both of them at once.
    """

    def __init__(self, shape: WarpTile, thread: Value, *, left_by_depth: bool, right_by_depth: bool) -> None:
        super().__init__(shape, thread)
        self.rows, self.columns = self._shares(thread, left_by_depth, right_by_depth)

    @kernel
    def _shares(self, thread: Value, left_by_depth: bool, right_by_depth: bool) -> tuple[Share, Share]:
        shape, (rows, columns) = self.shape, self.shape.piece
        lane, warp = thread % 32, thread // 32
        lane_row = lane % 2 + lane // (2 * shape.lane_columns) * 2
        lane_column = lane // 2 % shape.lane_columns
        warp_row, warp_column = warp % shape.warp_rows, warp // shape.warp_rows
        own_rows = share(rows, shape.lane_rows, warp_row, lane_row, left_by_depth)
        return own_rows, share(columns, shape.lane_columns, warp_column, lane_column, right_by_depth)

    @kernel
    def zeros(self) -> Value:
        rows, columns = self.shape.piece
        return zeros(f32, rows * columns)

    @kernel
    def multiply(self, accumulators: Value, left: TileMemory, right: TileMemory, stage: Index) -> Value:
        total, lines = accumulators, self.shape.lines
        for step in range(self.shape.depth // lines):
            for quad in static_range(0, lines, QUAD):
                total = self._quad(total, left, right, stage, place(step * lines + quad))
        return total

    @kernel
    def _quad(self, total: Value, left: TileMemory, right: TileMemory, stage: Index, line: Value) -> Value:
        """The accumulators with the products of the lines from `line` on added."""
        rows, columns = self.rows, self.columns
        all_rows = [] if rows.by_depth else [rows.quad(left, stage, line)]
        all_columns = [] if columns.by_depth else [columns.quad(right, stage, line)]
        for part in static_range(QUAD):
            a = rows.line(left, stage, line + part) if rows.by_depth else all_rows[0]
            b = columns.line(right, stage, line + part) if columns.by_depth else all_columns[0]
            number = part if max(rows.lines, columns.lines) > 1 else 0
            total = emit(OuterProductOp(total, a, b, number, rows.lines, columns.lines))
        return total

    @kernel
    def keep(self, accumulators: Value, results: TileMemory) -> None:
        rows, columns = self.rows, self.columns
        offsets = [row * results.pitch + column for row in rows.offsets for column in columns.offsets]
        index = results.at(0, rows.first, columns.first)
        store_fragment(accumulators, results.buffer, index, Access(offsets, wide=columns.by_depth))


class MatrixUnit(Engine):
    """The warps multiply on their matrix units. An operand's lines are rows (or columns) of the tile, or the depth."""

    def __init__(
        self, shape: WarpTile, thread: Value, kind: MmaKind, *, left_by_depth: bool, right_by_depth: bool
    ) -> None:
        super().__init__(shape, thread)
        self.kind = kind
        self.deep = 8 * PACKED[kind]  # elements of one instruction along the depth
        self.left_by_depth, self.right_by_depth = left_by_depth, right_by_depth
        self.tile_rows = shape.rows // shape.warp_rows // 16
        self.tile_columns = shape.columns // shape.warp_columns // 8
        self.lane, self.first_row, self.first_column, self.line8, self.matrix = self._place(thread)

    @kernel
    def _place(self, thread: Value) -> tuple[Value, ...]:
        """A lane, its warp's first row and column; eight lanes give the rows of one of four 8 x 8 matrices."""
        lane, warp, across = thread % 32, thread // 32, self.shape.warp_rows
        first_row = warp % across * (16 * self.tile_rows)
        first_column = warp // across * (8 * self.tile_columns)
        return lane, first_row, first_column, lane % 8, lane // 8

    @kernel
    def zeros(self) -> Value:
        return zeros(self.kind.accumulator_type, 4 * self.tile_rows * self.tile_columns)

    @kernel
    def multiply(self, accumulators: Value, left: TileMemory, right: TileMemory, stage: Index) -> Value:
        total, left_at, right_at = accumulators, self._left_index(left, stage), self._right_index(right, stage)
        for first in static_range(0, self.shape.depth, self.deep):
            a = self._fragments(left, left_at, first, self.left_by_depth, self.tile_rows)
            b = self._fragments(right, right_at, first, self.right_by_depth, self.tile_columns // 2)
            total = emit(MmaOp(self.kind, total, a, b, self.tile_rows, self.tile_columns))
        return total

    @kernel
    def _left_index(self, tile: TileMemory, stage: Index) -> Value:
        """Matrices in the order rows 0-7, rows 8-15 of the first half of the depth, then the same of the second one."""
        row, deep = self.matrix % 2 * 8, self.matrix // 2 * (self.deep // 2)
        return self._index(tile, stage, deep, self.first_row, row, self.left_by_depth)

    @kernel
    def _right_index(self, tile: TileMemory, stage: Index) -> Value:
        """Matrices in the order first half, second half of the depth of columns 0-7, then the same of columns 8-15."""
        deep, column = self.matrix % 2 * (self.deep // 2), self.matrix // 2 * 8
        return self._index(tile, stage, deep, self.first_column, column, self.right_by_depth)

    @kernel
    def _index(self, tile: TileMemory, stage: Index, deep: Value, first: Value, own: Value, by_depth: bool) -> Value:
        """Where a lane's row of a matrix starts in a tile: `deep` along the depth, `own` from the warp's first one."""
        if by_depth:
            return tile.at(stage, deep + self.line8, first + own)
        return tile.at(stage, first + own + self.line8, deep)

    @kernel
    def _fragments(self, tile: TileMemory, index: Value, first: int, by_depth: bool, count: int) -> Value:
        moved = index + (first * tile.pitch if by_depth else first)
        return emit(LoadMatrixOp(tile.buffer, moved, count, 16 if by_depth else 16 * tile.pitch, transpose=by_depth))

    @kernel
    def keep(self, accumulators: Value, results: TileMemory) -> None:
        row, column = self.first_row + self.lane // 4, self.first_column + self.lane % 4 * 2
        offsets = [
            (16 * i + 8 * half) * results.pitch + 8 * j + pair
            for i in static_range(self.tile_rows)
            for j in static_range(self.tile_columns)
            for half in static_range(2)
            for pair in static_range(2)
        ]
        store_fragment(accumulators, results.buffer, results.at(0, row, column), Access(offsets))
