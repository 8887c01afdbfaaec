"""Online softmax: the largest score and the sum of exponentials of each row, updated by tile after tile of scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BFloat16Type, f32
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.kernel.accumulators import ExponentialRowsOp, LimitColumnsOp, ReduceRowsOp, ScaleRowsOp
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.kernel.matrix_unit import MmaKind
from mlirt.kernels.attention.cuda.flash_scores import FlashScores
from mlirt.kernels.attention.cuda.flash_shape import QueryTile
from mlirt.kernels.lib.language import Value, kernel, value_of
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.simt_words import element_at, filled, fragment, shuffle_xor, zeros

_QUAD = (1, 2)  # masks of the shuffles among the four threads that share a row


# The stage that a tile is in, and the parity of its phase.
Stage: TypeAlias = tuple[Value, Value]


@dataclass(frozen=True)
class Range:
    """Tiles of keys: how many there are for this block, and from which one on not all keys count for all queries (None:
    all do in all tiles).
    """

    count: Value
    limited_from: Value | None


@dataclass(frozen=True)
class Weighed:
    """The weights of a tile, the factors of what was summed before, and the largest scores and sums of the rows."""

    weights: Value
    falls: list[Value]
    largest: Value
    total: Value


class FlashSoftmax(ABC):
    """What a warp does with its scores; each thread has elements of some rows of the warp."""

    def __init__(self, shape: QueryTile, element: Attribute, thread: Value, zero_masked: bool) -> None:
        self.shape, self.zero_masked = shape, zero_masked
        self.kind = MmaKind.BF16 if isinstance(element, BFloat16Type) else MmaKind.F16
        self.lane, self.first_row = self._place(thread)

    @kernel
    def _place(self, thread: Value) -> tuple[Value, Value]:
        """The number of a thread in its warp, and the warp's first query, counted from the block's."""
        return thread % 32, thread // 32 * (16 * self.shape.warp_rows)

    @property
    def rows(self) -> int:
        """The rows of which a thread has elements."""
        return 2 * self.shape.warp_rows

    @abstractmethod
    def add_values(self, results: Value, weights: Value, stage: Stage) -> Value:
        """The results plus weights times the values of a stage."""

    @kernel
    def start(self, count: int) -> tuple[Value, Value, Value]:
        """`count` results, the largest scores and the sums before the first tile."""
        results, largest, total = zeros(f32, count), filled(float("-inf"), f32, self.rows), zeros(f32, self.rows)
        return results, largest, total

    @kernel
    def limited(self, score: Value, scores: FlashScores, tile: Value, tiles: Range) -> Value:
        """Scores with -inf for keys that do not count."""
        if tiles.limited_from is not None and tile >= tiles.limited_from:
            score = emit(LimitColumnsOp(score, scores.first_key(tile), fragment(scores.limits()), self.shape.warp_rows))
        return score

    def step(self, score: Value, carried: list[Value], scale: Value, stage: Stage) -> list[Value]:
        """The carried results, largest scores and sums with one tile of scores added."""
        results, largest, total = carried
        weighed = self.weigh(score, largest, total, scale)
        results = self.add_values(self.scaled(results, weighed.falls), weighed.weights, stage)
        return [results, weighed.largest, weighed.total]

    @kernel
    def weigh(self, score: Value, largest: Value, total: Value, scale: Value) -> Weighed:
        """Exponentials of a tile of scores, and what they do to the running numbers of their rows."""
        rows = range(self.rows)
        own = emit(ReduceRowsOp(ReduceKind.MAX, score, self.shape.warp_rows))
        highest = [_largest(element_at(largest, row), element_at(own, row)) for row in rows]
        # 0 is subtracted as long as there is no score above -inf.
        shifts = [value_of(0.0 if one == float("-inf") else one) for one in highest]
        falls = [_exp2((element_at(largest, row) - shift) * scale) for row, shift in enumerate(shifts)]
        weights = emit(ExponentialRowsOp(score, fragment(shifts), scale, self.shape.warp_rows))
        added = emit(ReduceRowsOp(ReduceKind.ADD, weights, self.shape.warp_rows))
        totals = [emit(math.FmaOp(element_at(total, row), falls[row], element_at(added, row))) for row in rows]
        return Weighed(weights, falls, fragment(highest), fragment(totals))

    @kernel
    def scaled(self, results: Value, factors: Sequence[Value]) -> Value:
        """Results with each row times its factor."""
        return emit(ScaleRowsOp(results, fragment(factors), self.shape.warp_rows))

    @kernel
    def normalized(self, results: Value, total: Value) -> Value:
        """Results with each row over its sum."""
        totals = [element_at(total, row) for row in range(self.rows)]
        return self.scaled(results, [self._factor(_over_quad(arith.AddfOp, own)) for own in totals])

    @kernel
    def _factor(self, whole: Value) -> Value:
        factor = 1.0 / whole
        return value_of(factor if not self.zero_masked or whole > 0.0 else 0.0)


def _over_quad(combine: Callable[[SSAValue, SSAValue], Operation], own: Value) -> Value:
    """What the numbers of the threads that share a row combine to."""
    for mask in _QUAD:
        own = emit(combine(own, shuffle_xor(own, mask)))
    return own


def _largest(before: Value, own: Value) -> Value:
    return emit(arith.MaxnumfOp(before, _over_quad(arith.MaxnumfOp, own)))


def _exp2(number: Value) -> Value:
    return emit(math.Exp2Op(number))
