"""How a block multiplies two tiles in shared memory, and where its threads keep the accumulators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from mlirt.dialects.kernel.fragment import FillFragmentOp, LoadFragmentOp, OuterProductOp, StoreFragmentOp
from mlirt.dialects.kernel.matrix_unit import PACKED, LoadMatrixOp, MmaKind, MmaOp
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.tiles.shape import WarpTile
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemory
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.words import place, static_range


class Engine(ABC):
    """The multiplication of one tile shape; `left` is rows x depth, `right` depth x columns."""

    def __init__(self, k: KernelBuilder, shape: WarpTile, thread: SSAValue) -> None:
        self.k, self.shape, self.thread = k, shape, thread

    @abstractmethod
    def zeros(self) -> SSAValue:
        """Sums of nothing."""

    @abstractmethod
    def multiply(self, accumulators: SSAValue, left: TileMemory, right: TileMemory, stage: SSAValue | int) -> SSAValue:
        """The accumulators with the products of one stage added."""

    @abstractmethod
    def keep(self, accumulators: SSAValue, results: TileMemory) -> None:
        """Write the accumulators to shared memory, one row of the tile per line."""


class MultiplyAdd(Engine):
    """Each thread multiplies a piece of the tile in single precision.

    The lanes of a warp stand in rows and columns. Where an operand lies by depth a lane has quads of neighbours, which
    one access reads; else it has single rows (or columns), of which one access reads four lines of the depth. The
    lowest bit of a lane's number tells rows apart, the next one columns: lanes that differ in one of them read the same
    element of one operand, which the shared memory sends to both of them at once.
    """

    def __init__(
        self, k: KernelBuilder, shape: WarpTile, thread: SSAValue, *, left_by_depth: bool, right_by_depth: bool
    ) -> None:
        super().__init__(k, shape, thread)
        lane, warp = k.rem(thread, 32), k.div(thread, 32)
        lane_row = k.add(k.rem(lane, 2), k.mul(k.div(lane, 2 * shape.lane_columns), 2))
        lane_column = k.rem(k.div(lane, 2), shape.lane_columns)
        warp_row, warp_column = k.rem(warp, shape.warp_rows), k.div(warp, shape.warp_rows)
        rows, columns = shape.piece
        self.rows = Share(k, rows, shape.lane_rows, warp_row, lane_row, left_by_depth)
        self.columns = Share(k, columns, shape.lane_columns, warp_column, lane_column, right_by_depth)

    def zeros(self) -> SSAValue:
        rows, columns = self.shape.piece
        return self.k.value(FillFragmentOp(self.k.constant(0.0, f32), rows * columns))

    def multiply(self, accumulators: SSAValue, left: TileMemory, right: TileMemory, stage: SSAValue | int) -> SSAValue:
        return build(self.k, self._sum, value_of(accumulators), left, right, stage)

    @kernel
    def _sum(self, total: Value, left: TileMemory, right: TileMemory, stage: SSAValue | int) -> Value:
        lines = self.shape.lines
        for step in range(self.shape.depth // lines):
            for quad in static_range(0, lines, QUAD):
                total = self._quad(total, left, right, stage, place(step * lines + quad))
        return total

    def _quad(
        self, accumulators: Value, left: TileMemory, right: TileMemory, stage: SSAValue | int, line: SSAValue
    ) -> Value:
        """The accumulators with the products of the lines from `line` on added."""
        rows = self.rows.fragments(self.k, left, stage, line)
        columns = self.columns.fragments(self.k, right, stage, line)
        for part in range(QUAD):
            accumulators = self._add(accumulators, rows(part), columns(part), part)
        return accumulators

    def _add(self, accumulators: SSAValue, rows: SSAValue, columns: SSAValue, part: int) -> Value:
        """The products of a line, which is a part of those that the fragments have."""
        lines = self.rows.lines, self.columns.lines
        return self.k.value(OuterProductOp(accumulators, rows, columns, part if max(lines) > 1 else 0, *lines))

    def keep(self, accumulators: SSAValue, results: TileMemory) -> None:
        offsets = [row * results.pitch + column for row in self.rows.offsets for column in self.columns.offsets]
        index = results.at(self.k, 0, self.rows.first, self.columns.first)
        wide = self.columns.by_depth
        self.k.insert(StoreFragmentOp(accumulators, results.buffer, index, offsets, wide=wide))


QUAD = 4
"""Elements of 4 bytes that one access reads."""


class Share:
    """The rows (or columns) of a tile that a lane has: `offsets` from the `first` one on."""

    def __init__(
        self,
        k: KernelBuilder,
        count: int,
        lanes: int,
        warp: SSAValue,
        lane: SSAValue,
        by_depth: bool,
        together: int = QUAD,
    ) -> None:
        """By depth a lane has so many neighbours `together`."""
        self.by_depth, self.lines = by_depth, 1 if by_depth else QUAD
        together = together if by_depth else 1
        self.offsets = [
            group * lanes * together + near for group in range(count // together) for near in range(together)
        ]
        self.first = k.add(k.mul(warp, lanes * count), k.mul(lane, together))

    def fragments(
        self, k: KernelBuilder, tile: TileMemory, stage: SSAValue | int, line: SSAValue
    ) -> Callable[[int], SSAValue]:
        """The fragment for each of the lines from `line` on: another one for each, or one that has all of them."""
        if self.by_depth:

            def load(part: int) -> SSAValue:
                index = tile.at(k, stage, k.add(line, part), self.first)
                return k.value(LoadFragmentOp(tile.buffer, index, self.offsets, wide=True))

            return load
        offsets = [own * tile.pitch + part for own in self.offsets for part in range(QUAD)]
        index = tile.at(k, stage, self.first, line)
        loaded = k.value(LoadFragmentOp(tile.buffer, index, offsets, wide=True))
        return lambda _: loaded


class MatrixUnit(Engine):
    """The warps multiply on their matrix units. An operand's lines are rows (or columns) of the tile, or the depth."""

    def __init__(
        self,
        k: KernelBuilder,
        shape: WarpTile,
        thread: SSAValue,
        kind: MmaKind,
        *,
        left_by_depth: bool,
        right_by_depth: bool,
    ) -> None:
        super().__init__(k, shape, thread)
        self.kind = kind
        self.deep = 8 * PACKED[kind]  # elements of one instruction along the depth
        self.left_by_depth, self.right_by_depth = left_by_depth, right_by_depth
        self.tile_rows = shape.rows // shape.warp_rows // 16
        self.tile_columns = shape.columns // shape.warp_columns // 8
        lane, warp = k.rem(thread, 32), k.div(thread, 32)
        self.first_row = k.mul(k.rem(warp, shape.warp_rows), 16 * self.tile_rows)
        self.first_column = k.mul(k.div(warp, shape.warp_rows), 8 * self.tile_columns)
        self.lane = lane
        # Eight lanes give the rows of one of four 8 x 8 matrices.
        self.line8, self.matrix = k.rem(lane, 8), k.div(lane, 8)

    def zeros(self) -> SSAValue:
        return self.k.value(
            FillFragmentOp(self.k.constant(0, self.kind.accumulator_type), 4 * self.tile_rows * self.tile_columns)
        )

    def multiply(self, accumulators: SSAValue, left: TileMemory, right: TileMemory, stage: SSAValue | int) -> SSAValue:
        k = self.k
        left_at, right_at = self._left_index(left, stage), self._right_index(right, stage)
        for first in range(0, self.shape.depth, self.deep):
            a = self._fragments(left, left_at, first, self.left_by_depth, self.tile_rows)
            b = self._fragments(right, right_at, first, self.right_by_depth, self.tile_columns // 2)
            accumulators = k.value(MmaOp(self.kind, accumulators, a, b, self.tile_rows, self.tile_columns))
        return accumulators

    def _left_index(self, tile: TileMemory, stage: SSAValue | int) -> SSAValue:
        """Matrices in the order rows 0-7, rows 8-15 of the first half of the depth, then the same of the second one."""
        k = self.k
        row, deep = k.mul(k.rem(self.matrix, 2), 8), k.mul(k.div(self.matrix, 2), self.deep // 2)
        if self.left_by_depth:
            return tile.at(k, stage, k.add(deep, self.line8), k.add(self.first_row, row))
        return tile.at(k, stage, k.add(k.add(self.first_row, row), self.line8), deep)

    def _right_index(self, tile: TileMemory, stage: SSAValue | int) -> SSAValue:
        """Matrices in the order first half, second half of the depth of columns 0-7, then the same of columns 8-15."""
        k = self.k
        deep, column = k.mul(k.rem(self.matrix, 2), self.deep // 2), k.mul(k.div(self.matrix, 2), 8)
        if self.right_by_depth:
            return tile.at(k, stage, k.add(deep, self.line8), k.add(self.first_column, column))
        return tile.at(k, stage, k.add(k.add(self.first_column, column), self.line8), deep)

    def _fragments(self, tile: TileMemory, index: SSAValue, first: int, by_depth: bool, count: int) -> SSAValue:
        moved = self.k.add(index, first * tile.pitch if by_depth else first)
        step = 16 if by_depth else 16 * tile.pitch
        return self.k.value(LoadMatrixOp(tile.buffer, moved, count, step, transpose=by_depth))

    def keep(self, accumulators: SSAValue, results: TileMemory) -> None:
        k, pitch = self.k, results.pitch
        row = k.add(self.first_row, k.div(self.lane, 4))
        column = k.add(self.first_column, k.mul(k.rem(self.lane, 4), 2))
        offsets = [
            (16 * i + 8 * half) * pitch + 8 * j + pair
            for i in range(self.tile_rows)
            for j in range(self.tile_columns)
            for half in range(2)
            for pair in range(2)
        ]
        k.insert(StoreFragmentOp(accumulators, results.buffer, results.at(k, 0, row, column), offsets))
