"""Tiles of float32 on the matrix units: bf16x6, and multiply-adds once more where a result is not finite."""

from __future__ import annotations

from mlirt.dialects.kernel.split_float import SplitMmaOp
from mlirt.kernels.lib.cuda.tiles.engines import QUAD, Engine, MultiplyAdd, Share, share
from mlirt.kernels.lib.cuda.tiles.loaders import Loader
from mlirt.kernels.lib.cuda.tiles.main_loop import sum_of_products
from mlirt.kernels.lib.cuda.tiles.shape import WarpTile
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemory
from mlirt.kernels.lib.language import Index, Value, kernel, value_of
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.simt_words import Access, block_is_finite, load_fragment
from mlirt.kernels.lib.language.words import static_range

_DEEP = 16  # elements of one instruction along the depth
_BLOCK = 32  # rows, or columns, of which a lane has a quad
_LINES = (0, 1, 8, 9)
"""Of a lane from its first one on; lane 4 g + t begins with 2 t. So the eight lanes of a part of a 16-byte access read
different banks, as lines are 4 banks apart.
"""


class InQuads(MultiplyAdd):
    """Each thread multiplies for itself, and has the accumulators that it has of the matrix units."""

    def __init__(self, shape: WarpTile, thread: Value) -> None:
        Engine.__init__(self, shape, thread)
        self.warp_row, self.warp_column, self.quad, self.deep = self._place(thread)
        self.rows, self.columns = self._own()

    @kernel
    def _place(self, thread: Value) -> tuple[Value, ...]:
        """A warp's row and column, and a lane's quad and place in it."""
        lane, warp, across = thread % 32, thread // 32, self.shape.warp_rows
        return warp % across, warp // across, lane // QUAD, lane % QUAD

    @kernel
    def _own(self) -> tuple[Share, Share]:
        rows, columns = self.shape.piece
        own_rows = share(rows, _BLOCK // QUAD, self.warp_row, self.quad, by_depth=True)
        return own_rows, share(columns, QUAD, self.warp_column, self.deep, by_depth=True, together=2 * QUAD)


class SplitMatrixUnit(InQuads):
    """The warps multiply on their matrix units; the lines of both operands go along the depth."""

    def __init__(self, shape: WarpTile, thread: Value) -> None:
        super().__init__(shape, thread)
        self.tile_rows, self.tile_columns = shape.rows // shape.warp_rows, shape.columns // shape.warp_columns
        self.left_column, self.right_column = self._columns()

    @kernel
    def _columns(self) -> tuple[Value, Value]:
        """The first of a lane's quads in the lines of both operands."""
        near = self.quad * QUAD
        return self.warp_row * self.tile_rows + near, self.warp_column * self.tile_columns + near

    @kernel
    def multiply(self, accumulators: Value, left: TileMemory, right: TileMemory, stage: Index) -> Value:
        total, line = accumulators, self.deep * 2
        left_at = left.at(stage, line, self.left_column)
        right_at = right.at(stage, line, self.right_column)
        for first in static_range(0, self.shape.depth, _DEEP):
            a = self._fragment(left, left_at, first, self.tile_rows)
            b = self._fragment(right, right_at, first, self.tile_columns)
            total = emit(SplitMmaOp(total, a, b, self.tile_rows // 16, self.tile_columns // 8))
        return total

    @kernel
    def _fragment(self, tile: TileMemory, index: Value, first: int, count: int) -> Value:
        offsets = [
            block + (first + line) * tile.pitch + near
            for block in static_range(0, count, _BLOCK)
            for line in _LINES
            for near in static_range(QUAD)
        ]
        return load_fragment(tile.buffer, index, Access(offsets, wide=True))


@kernel
def exact_sum(engine: SplitMatrixUnit, left: Loader, right: Loader, first: Value, steps: Value, stages: int) -> Value:
    """The sum of products, which threads multiply for themselves where it, or a factor, is infinite or no number."""
    total = sum_of_products(engine, left, right, first, steps, stages)
    if not block_is_finite(total):
        plain = InQuads(engine.shape, engine.thread)
        total = sum_of_products(plain, left, right, first, steps, stages)
    return value_of(total)
