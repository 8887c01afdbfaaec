"""The code of a block that computes attention for some queries of one head, on the matrix units.

Queries stay in registers; keys and values come to shared memory tile by tile, the next tile while one is used. A tile
of scores lives in registers only: its largest value and its sum go into the running ones of each row, and what was
summed before is scaled down when a larger score appears (online softmax in single precision).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from mlirt.dialects.kernel.accumulators import PackAccumulatorsOp
from mlirt.kernels.attention.cuda.flash_scores import FlashScores
from mlirt.kernels.attention.cuda.flash_shape import FlashShape
from mlirt.kernels.attention.cuda.flash_softmax import FlashSoftmax, Range, Stage
from mlirt.kernels.attention.cuda.flash_tiles import STAGES, FlashTiles
from mlirt.kernels.lib.cuda.tiles.loaders import Loader
from mlirt.kernels.lib.language import Index, Value, kernel, value_of
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.simt_words import commit_copies, load_matrix, mma, sync_threads, wait_for_copies, zeros
from mlirt.kernels.lib.language.words import place, static_range

_STEP = 16  # along the depth of one product of the matrix unit


@dataclass(frozen=True)
class Loaders:
    queries: Loader
    keys: Loader
    values: Loader


class FlashKernel(FlashSoftmax):
    """`depth` and `columns` are those of a head."""

    def __init__(
        self,
        shape: FlashShape,
        element: Attribute,
        depth: int,
        columns: int,
        tiles: FlashTiles,
        thread: Value,
        zero_masked: bool,
    ) -> None:
        super().__init__(shape, element, thread, zero_masked)
        self.flash_shape, self.tiles = shape, tiles
        self.depth_steps, self.column_steps = -(-depth // _STEP), -(-columns // _STEP)
        self.line8, self.matrix = self._matrix()

    @kernel
    def _matrix(self) -> tuple[Value, Value]:
        """The line that a lane gives to a matrix of 8 lines, and the number of that matrix."""
        return self.lane % 8, self.lane // 8

    @kernel
    def results(self, loaders: Loaders, block_tile: Value, tiles: Range, scores: FlashScores) -> Value:
        """The accumulators of the block's results; afterwards no copy is on its way, and all threads are done."""
        loaders.queries.start(block_tile, 0)
        self._start(loaders, place(0), 0)
        self._arrive()
        queries = self._queries()
        results, largest, total = self.start(4 * self.shape.warp_rows * 2 * self.column_steps)
        for tile in range(tiles.count):
            self._arrive()
            following, stage = value_of(tile + 1), value_of(tile % STAGES)
            if following < tiles.count:
                self._start(loaders, following, following % STAGES)
            read = scores.read(value_of(tile))
            score = scores.scores(self._products(queries, stage), value_of(tile), read)
            score = self.limited(score, scores, value_of(tile), tiles)
            results, largest, total = self.step(score, [results, largest, total], scores.scale, (stage, place(0)))
        self._arrive()
        return self.normalized(results, total)

    # --- tiles on their way

    def _start(self, loaders: Loaders, tile: Value, stage: Index) -> None:
        loaders.keys.start(tile, stage)
        loaders.values.start(tile, stage)

    def _arrive(self) -> None:
        """All copies have happened, for all threads."""
        commit_copies()
        wait_for_copies(0)
        sync_threads()

    # --- products

    @kernel
    def _queries(self) -> list[Value]:
        """The fragments of the warp's queries, one for each step along the depth."""
        tile = self.tiles.queries
        row = self.first_row + self.matrix % 2 * 8 + self.line8
        at = tile.at(0, row, self.matrix // 2 * 8)
        starts = [at + _STEP * step for step in static_range(self.depth_steps)]
        return [load_matrix(tile.buffer, start, self.shape.warp_rows, 16 * tile.pitch) for start in starts]

    @kernel
    def _products(self, queries: Sequence[Value], stage: Value) -> Value:
        """Queries times keys."""
        tile, shape, columns = self.tiles.keys, self.flash_shape, self.flash_shape.keys // 8
        at = tile.at(stage, self.matrix // 2 * 8 + self.line8, self.matrix % 2 * 8)
        accumulators = zeros(f32, 4 * shape.warp_rows * columns)
        for step, left in enumerate(queries):
            right = load_matrix(tile.buffer, at + _STEP * step, columns // 2, 16 * tile.pitch)
            accumulators = mma(self.kind, accumulators, left, right, shape.warp_rows, columns)
        return accumulators

    @kernel
    def add_values(self, results: Value, weights: Value, stage: Stage) -> Value:
        """The results plus weights times values."""
        tile, shape = self.tiles.values, self.flash_shape
        at = tile.at(stage[0], self.matrix % 2 * 8 + self.line8, self.matrix // 2 * 8)
        for step in static_range(shape.keys // _STEP):
            left = emit(PackAccumulatorsOp(self.kind, weights, shape.warp_rows, step))
            right = load_matrix(tile.buffer, at + _STEP * step * tile.pitch, self.column_steps, _STEP, transpose=True)
            results = mma(self.kind, results, left, right, shape.warp_rows, 2 * self.column_steps)
        return results
