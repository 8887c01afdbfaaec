"""The code of a block that computes attention for some queries of one head, on the matrix units.

Queries stay in registers; keys and values come to shared memory tile by tile, the next tile while one is used. A tile
of scores lives in registers only: its largest value and its sum go into the running ones of each row, and what was
summed before is scaled down when a larger score appears (online softmax in single precision).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BFloat16Type, f32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.kernel.accumulators import (
    ExponentialRowsOp,
    LimitColumnsOp,
    PackAccumulatorsOp,
    ReduceRowsOp,
    ScaleRowsOp,
)
from mlirt.dialects.kernel.async_copy import CommitAsyncOp, WaitAsyncOp
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.kernel.fragment import FillFragmentOp, FragmentElementOp, FragmentOp
from mlirt.dialects.kernel.matrix_unit import LoadMatrixOp, MmaKind, MmaOp
from mlirt.dialects.kernel.simt import BarrierOp, ShuffleOp
from mlirt.passes.lowering.attention.flash_scores import FlashScores
from mlirt.passes.lowering.attention.flash_shape import FlashShape
from mlirt.passes.lowering.attention.flash_tiles import STAGES, FlashTiles
from mlirt.passes.lowering.kernel_builder import KernelBuilder
from mlirt.passes.lowering.tiles.loaders import Loader

_STEP = 16  # along the depth of one product of the matrix unit
_QUAD = (1, 2)  # masks of the shuffles among the four threads that share a row


@dataclass(frozen=True)
class Loaders:
    queries: Loader
    keys: Loader
    values: Loader


@dataclass(frozen=True)
class Range:
    """Tiles of keys: how many there are for this block, and from which one on not all keys count for all queries (None:
    all do in all tiles).
    """

    count: SSAValue
    limited_from: SSAValue | None


class FlashKernel:
    """Appends the code to a kernel; `depth` and `columns` are those of a head."""

    def __init__(
        self,
        k: KernelBuilder,
        shape: FlashShape,
        element: Attribute,
        depth: int,
        columns: int,
        tiles: FlashTiles,
        thread: SSAValue,
        zero_masked: bool,
    ) -> None:
        self.k, self.shape, self.tiles, self.zero_masked = k, shape, tiles, zero_masked
        self.kind = MmaKind.BF16 if isinstance(element, BFloat16Type) else MmaKind.F16
        self.depth_steps, self.column_steps = -(-depth // _STEP), -(-columns // _STEP)
        self.lane = k.rem(thread, 32)
        self.first_row = k.mul(k.div(thread, 32), 16 * shape.rows)
        """The warp's first query, counted from the block's."""
        self.line8, self.matrix = k.rem(self.lane, 8), k.div(self.lane, 8)

    @property
    def rows(self) -> int:
        """The rows of which a thread has elements."""
        return 2 * self.shape.rows

    def results(self, loaders: Loaders, block_tile: SSAValue, tiles: Range, scores: FlashScores) -> SSAValue:
        """The accumulators of the block's results; afterwards no copy is on its way, and all threads are done."""
        k = self.k
        loaders.queries.start(block_tile, 0)
        self._start(loaders, k.constant(0), 0)
        self._arrive()
        queries = self._queries()
        zeros = [k.constant(value, f32) for value in (0.0, float("-inf"), 0.0)]
        counts = [4 * self.shape.rows * 2 * self.column_steps, self.rows, self.rows]
        carried = [k.value(FillFragmentOp(zero, count)) for zero, count in zip(zeros, counts, strict=True)]
        for value, name in zip(carried, ("results", "largest", "total"), strict=True):
            value.name_hint = name

        def body(tile: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            self._arrive()
            following, stage = k.add(tile, 1), k.rem(tile, STAGES)
            k.when(
                k.compare("slt", following, tiles.count),
                lambda: self._start(loaders, following, k.rem(following, STAGES)),
            )
            score = scores.scores(self._products(queries, stage), tile)
            if tiles.limited_from is not None:
                is_limited = k.compare("sge", tile, tiles.limited_from)
                score = k.guarded(is_limited, partial(self._limited, score, scores, tile), score)
            return self._step(score, carried, scores.scale, stage)

        results, _, total = k.loop(tiles.count, carried, body)
        self._arrive()
        return self._normalized(results, total)

    # --- tiles on their way

    def _start(self, loaders: Loaders, tile: SSAValue, stage: SSAValue | int) -> None:
        loaders.keys.start(tile, stage)
        loaders.values.start(tile, stage)

    def _arrive(self) -> None:
        """All copies have happened, for all threads."""
        self.k.insert(CommitAsyncOp())
        self.k.insert(WaitAsyncOp(0))
        self.k.insert(BarrierOp())

    # --- products

    def _queries(self) -> list[SSAValue]:
        """The fragments of the warp's queries, one for each step along the depth."""
        k, tile = self.k, self.tiles.queries
        row = k.add(k.add(self.first_row, k.mul(k.rem(self.matrix, 2), 8)), self.line8)
        at = tile.at(k, 0, row, k.mul(k.div(self.matrix, 2), 8))
        return [
            k.value(LoadMatrixOp(tile.buffer, k.add(at, _STEP * step), self.shape.rows, 16 * tile.pitch))
            for step in range(self.depth_steps)
        ]

    def _products(self, queries: Sequence[SSAValue], stage: SSAValue) -> SSAValue:
        """Queries times keys."""
        k, tile, shape = self.k, self.tiles.keys, self.shape
        columns = shape.keys // 8
        line = k.add(k.mul(k.div(self.matrix, 2), 8), self.line8)
        at = tile.at(k, stage, line, k.mul(k.rem(self.matrix, 2), 8))
        sums = k.value(FillFragmentOp(k.constant(0.0, f32), 4 * shape.rows * columns))
        for step, left in enumerate(queries):
            right = k.value(LoadMatrixOp(tile.buffer, k.add(at, _STEP * step), columns // 2, 16 * tile.pitch))
            sums = k.value(MmaOp(self.kind, sums, left, right, shape.rows, columns))
        return sums

    def _add_values(self, results: SSAValue, weights: SSAValue, stage: SSAValue) -> SSAValue:
        """The results plus weights times values."""
        k, tile, shape = self.k, self.tiles.values, self.shape
        line = k.add(k.mul(k.rem(self.matrix, 2), 8), self.line8)
        at = tile.at(k, stage, line, k.mul(k.div(self.matrix, 2), 8))
        for step in range(shape.keys // _STEP):
            left = k.value(PackAccumulatorsOp(self.kind, weights, shape.rows, step))
            moved = k.add(at, _STEP * step * tile.pitch)
            right = k.value(LoadMatrixOp(tile.buffer, moved, self.column_steps, _STEP, transpose=True))
            results = k.value(MmaOp(self.kind, results, left, right, shape.rows, 2 * self.column_steps))
        return results

    # --- softmax

    def _limited(self, score: SSAValue, scores: FlashScores, tile: SSAValue) -> SSAValue:
        limits = self.k.value(FragmentOp(scores.limits()))
        return self.k.value(LimitColumnsOp(score, scores.first_key(tile), limits, self.shape.rows))

    def _step(self, score: SSAValue, carried: list[SSAValue], scale: SSAValue, stage: SSAValue) -> list[SSAValue]:
        """The carried results, largest scores and sums with one tile of scores added."""
        k, (results, largest, total) = self.k, carried
        own = k.value(ReduceRowsOp(ReduceKind.MAX, score, self.shape.rows))
        highest = [self._largest(self._element(largest, row), self._element(own, row)) for row in range(self.rows)]
        shifts = [self._finite(value) for value in highest]
        falls = [self._fall(self._element(largest, row), shifts[row], scale) for row in range(self.rows)]
        weights = k.value(ExponentialRowsOp(score, k.value(FragmentOp(shifts)), scale, self.shape.rows))
        sums = k.value(ReduceRowsOp(ReduceKind.ADD, weights, self.shape.rows))
        totals = [
            k.value(math.FmaOp(self._element(total, row), falls[row], self._element(sums, row)))
            for row in range(self.rows)
        ]
        results = k.value(ScaleRowsOp(results, k.value(FragmentOp(falls)), self.shape.rows))
        results = self._add_values(results, weights, stage)
        return [results, k.value(FragmentOp(highest)), k.value(FragmentOp(totals))]

    def _element(self, fragment: SSAValue, position: int) -> SSAValue:
        return self.k.value(FragmentElementOp(fragment, position))

    def _largest(self, before: SSAValue, own: SSAValue) -> SSAValue:
        k = self.k
        for mask in _QUAD:
            own = k.value(arith.MaxnumfOp(own, k.value(ShuffleOp(own, mask))))
        return k.value(arith.MaxnumfOp(before, own))

    def _finite(self, largest: SSAValue) -> SSAValue:
        """What is subtracted from scores: 0 as long as there is none above -inf."""
        k = self.k
        none = k.value(arith.CmpfOp(largest, k.constant(float("-inf"), f32), "oeq"))
        return k.value(arith.SelectOp(none, k.constant(0.0, f32), largest))

    def _fall(self, before: SSAValue, shift: SSAValue, scale: SSAValue) -> SSAValue:
        """What earlier exponentials are multiplied with."""
        k = self.k
        return k.value(math.Exp2Op(k.value(arith.MulfOp(k.value(arith.SubfOp(before, shift)), scale))))

    def _normalized(self, results: SSAValue, total: SSAValue) -> SSAValue:
        k, factors = self.k, list[SSAValue]()
        for row in range(self.rows):
            whole = self._element(total, row)
            for mask in _QUAD:
                whole = k.value(arith.AddfOp(whole, k.value(ShuffleOp(whole, mask))))
            factor = k.value(arith.DivfOp(k.constant(1.0, f32), whole))
            if self.zero_masked:
                exists = k.value(arith.CmpfOp(whole, k.constant(0.0, f32), "ogt"))
                factor = k.value(arith.SelectOp(exists, factor, k.constant(0.0, f32)))
            factors.append(factor)
        return k.value(ScaleRowsOp(results, k.value(FragmentOp(factors)), self.shape.rows))
