"""Online softmax: the largest score and the sum of exponentials of each row, updated by tile after tile of scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BFloat16Type, f32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.kernel.accumulators import ExponentialRowsOp, LimitColumnsOp, ReduceRowsOp, ScaleRowsOp
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.kernel.fragment import FillFragmentOp, FragmentElementOp, FragmentOp
from mlirt.dialects.kernel.matrix_unit import MmaKind
from mlirt.dialects.kernel.simt import ShuffleOp
from mlirt.kernels.attention.cuda.flash_scores import FlashScores, WarpShape
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language import Value, kernel

_QUAD = (1, 2)  # masks of the shuffles among the four threads that share a row


# The stage that a tile is in, and the parity of its phase.
Stage: TypeAlias = tuple[SSAValue, SSAValue]


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

    weights: SSAValue
    falls: list[SSAValue]
    largest: SSAValue
    total: SSAValue


class FlashSoftmax(ABC):
    """What a warp does with its scores; each thread has elements of some rows of the warp."""

    def __init__(
        self, k: KernelBuilder, shape: WarpShape, element: Attribute, thread: SSAValue, zero_masked: bool
    ) -> None:
        self.k, self.shape, self.zero_masked = k, shape, zero_masked
        self.kind = MmaKind.BF16 if isinstance(element, BFloat16Type) else MmaKind.F16
        self.lane = k.rem(thread, 32)
        self.first_row = k.mul(k.div(thread, 32), 16 * shape.rows)
        """The warp's first query, counted from the block's."""

    @property
    def rows(self) -> int:
        """The rows of which a thread has elements."""
        return 2 * self.shape.rows

    @abstractmethod
    def add_values(self, results: SSAValue, weights: SSAValue, stage: Stage) -> SSAValue:
        """The results plus weights times the values of a stage."""

    def start(self, count: int) -> Sequence[SSAValue]:
        """`count` results, the largest scores and the sums before the first tile."""
        k = self.k
        numbers = [k.constant(value, f32) for value in (0.0, float("-inf"), 0.0)]
        counts = [count, self.rows, self.rows]
        carried = [k.value(FillFragmentOp(number, size)) for number, size in zip(numbers, counts, strict=True)]
        for value, name in zip(carried, ("results", "largest", "total"), strict=True):
            value.name_hint = name
        return carried

    @kernel
    def limited(self, score: SSAValue, scores: FlashScores, tile: Value, tiles: Range) -> SSAValue:
        """Scores with -inf for keys that do not count."""
        if tiles.limited_from is not None and tile >= tiles.limited_from:
            limits = self.k.value(FragmentOp(scores.limits()))
            score = self.k.value(LimitColumnsOp(score, scores.first_key(tile), limits, self.shape.rows))
        return score

    def step(self, score: SSAValue, carried: list[SSAValue], scale: SSAValue, stage: Stage) -> list[SSAValue]:
        """The carried results, largest scores and sums with one tile of scores added."""
        results, largest, total = carried
        weighed = self.weigh(score, largest, total, scale)
        results = self.add_values(self.scaled(results, weighed.falls), weighed.weights, stage)
        return [results, weighed.largest, weighed.total]

    def weigh(self, score: SSAValue, largest: SSAValue, total: SSAValue, scale: SSAValue) -> Weighed:
        """Exponentials of a tile of scores, and what they do to the running numbers of their rows."""
        k = self.k
        own = k.value(ReduceRowsOp(ReduceKind.MAX, score, self.shape.rows))
        highest = [self._largest(self._element(largest, row), self._element(own, row)) for row in range(self.rows)]
        shifts = [self._finite(value) for value in highest]
        falls = [self._fall(self._element(largest, row), shifts[row], scale) for row in range(self.rows)]
        weights = k.value(ExponentialRowsOp(score, k.value(FragmentOp(shifts)), scale, self.shape.rows))
        accumulators = k.value(ReduceRowsOp(ReduceKind.ADD, weights, self.shape.rows))
        totals = [
            k.value(math.FmaOp(self._element(total, row), falls[row], self._element(accumulators, row)))
            for row in range(self.rows)
        ]
        return Weighed(weights, falls, k.value(FragmentOp(highest)), k.value(FragmentOp(totals)))

    def scaled(self, results: SSAValue, factors: list[SSAValue]) -> SSAValue:
        """Results with each row times its factor."""
        return self.k.value(ScaleRowsOp(results, self.k.value(FragmentOp(factors)), self.shape.rows))

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

    def normalized(self, results: SSAValue, total: SSAValue) -> SSAValue:
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
        return self.scaled(results, factors)
