"""The code of a block of warpgroups that compute attention while one thread lets the device copy what they need.

Each warpgroup multiplies its 64 queries by a tile of keys, turns the scores into weights in registers, and multiplies
these by the values. While one warpgroup computes exponentials the matrix units work for another one.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.kernel.accumulators import PackAccumulatorsOp
from mlirt.dialects.kernel.core import YieldOp
from mlirt.dialects.kernel.fragment import FillFragmentOp, StoreFragmentOp
from mlirt.dialects.kernel.fragment_map import FragmentPartOp, MapFragmentOp
from mlirt.dialects.kernel.transaction_barrier import MbarrierArriveOp, MbarrierWaitOp
from mlirt.dialects.kernel.warpgroup import (
    ROWS,
    WARPGROUP,
    JoinColumnsOp,
    WarpgroupAccumulatorsOp,
    WarpgroupMmaOp,
)
from mlirt.dialects.kernel.warpgroup_registers import STEPS, WarpgroupMmaRegistersOp
from mlirt.dialects.tensor_types import element_of
from mlirt.kernels.attention.cuda.flash_scores import FlashScores
from mlirt.kernels.attention.cuda.flash_softmax import FlashSoftmax, Range, Stage
from mlirt.kernels.attention.cuda.flash_tiles import batch_offset
from mlirt.kernels.attention.cuda.group_copies import GroupMemory
from mlirt.kernels.attention.cuda.group_shape import GroupShape, lines
from mlirt.kernels.attention.walks import Walk
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder

_LINE = 64  # elements
_STEP = 16  # keys of a left fragment
_WIDTH = 8  # neighbouring results that a thread writes


class GroupKernel(FlashSoftmax):
    """Appends the code of the warpgroups that multiply; `group` is the number of this thread's."""

    def __init__(
        self,
        k: KernelBuilder,
        shape: GroupShape,
        element: Attribute,
        columns: int,
        memory: GroupMemory,
        group: SSAValue,
        thread: SSAValue,
        zero_masked: bool,
    ) -> None:
        super().__init__(k, shape, element, thread, zero_masked)
        self.group_shape, self.columns, self.memory, self.group, self.thread = shape, columns, memory, group, thread

    def results(self, tiles: Range, scores: FlashScores) -> SSAValue:
        """The accumulators of the warpgroup's results."""
        k, memory = self.k, self.memory
        k.insert(MbarrierWaitOp(memory.queries_here, k.constant(0), k.constant(0)))
        results, total = (
            self._overlapping(tiles, scores) if self.group_shape.overlaps else self._one_after_the_other(tiles, scores)
        )
        return self.normalized(results, total)

    def _one_after_the_other(self, tiles: Range, scores: FlashScores) -> tuple[SSAValue, SSAValue]:
        """`for each tile { scores; weights; results += weights * values }`."""
        k = self.k

        def body(tile: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            state = self.memory.pipeline_state(tile)
            score = self._score(k.value(WarpgroupAccumulatorsOp(self._start_products(state))), scores, tile, tiles)
            added = self.step(score, carried, scores.scale, state)
            self._give_back(state[0])
            return added

        results, _, total = k.loop(tiles.count, self.start(lines(self.columns) // 2), body)
        return results, total

    def _overlapping(self, tiles: Range, scores: FlashScores) -> tuple[SSAValue, SSAValue]:
        """The scores of a tile are under way before the values of the tile before it.

        scores of tile 0; weights
        for each further tile { start scores; start results += weights * values before; wait for the scores;
                                new weights; wait for the results; results *= falls }
        results += weights * values
        """
        k, memory = self.k, self.memory
        first, results = k.constant(0), self.start(lines(self.columns) // 2)
        score = k.value(WarpgroupAccumulatorsOp(self._start_products(memory.pipeline_state(first))))
        weighed = self.weigh(self._score(score, scores, first, tiles), results[1], results[2], scores.scale)
        packed = self._packed(weighed.weights)

        def body(number: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            results, largest, total, *packed = carried
            tile, before = k.add(number, 1), memory.pipeline_state(number)
            products = self._start_products(memory.pipeline_state(tile))
            results = self._start_values(results, packed, before)
            score = k.value(WarpgroupAccumulatorsOp(products, self.group_shape.keys // _LINE))
            weighed = self.weigh(self._score(score, scores, tile, tiles), largest, total, scores.scale)
            results = self.scaled(k.value(WarpgroupAccumulatorsOp(results)), weighed.falls)
            self._give_back(before[0])
            return [results, weighed.largest, weighed.total, *self._packed(weighed.weights)]

        rest = k.sub(tiles.count, 1)
        carried = [results[0], weighed.largest, weighed.total, *packed]
        results, _, total, *packed = k.loop(rest, carried, body)
        return k.value(WarpgroupAccumulatorsOp(self._start_values(results, packed, memory.pipeline_state(rest)))), total

    def _score(self, products: SSAValue, scores: FlashScores, tile: SSAValue, tiles: Range) -> SSAValue:
        return self.limited(scores.scores(products, tile), scores, tile, tiles)

    def _give_back(self, stage: SSAValue) -> None:
        """Nobody in this warpgroup reads a stage any more."""
        leads = self.k.compare("eq", self.k.rem(self.thread, WARPGROUP), 0)
        self.k.when(leads, lambda: _ignore(self.k.insert(MbarrierArriveOp(self.memory.empty, stage))))

    def _start_products(self, state: Stage) -> SSAValue:
        """Queries times the keys of a stage."""
        k, memory, keys = self.k, self.memory, self.group_shape.keys
        k.insert(MbarrierWaitOp(memory.keys_here, *state))
        queries, boxes = memory.query_boxes, memory.key_boxes
        accumulators = k.value(FillFragmentOp(k.constant(0.0, f32), keys // 2))
        start = k.mul(state[0], boxes.size)
        own = k.mul(self.group, ROWS * _LINE)
        for line in range(boxes.wide):
            left = (memory.queries, k.add(own, line * queries.box))
            right = (memory.keys, k.add(start, line * boxes.box))
            accumulators = k.value(WarpgroupMmaOp(self.kind, accumulators, left, right, keys))
        return accumulators

    def _packed(self, weights: SSAValue) -> list[SSAValue]:
        """Weights as left fragments, one for each 16 keys."""
        steps = range(self.group_shape.keys // _STEP)
        return [self.k.value(PackAccumulatorsOp(self.kind, weights, 1, step)) for step in steps]

    def _start_values(self, results: SSAValue, packed: Sequence[SSAValue], state: Stage) -> SSAValue:
        """The results plus weights times the values of a stage."""
        k, memory, boxes = self.k, self.memory, self.memory.value_boxes
        k.insert(MbarrierWaitOp(memory.values_here, *state))
        start = k.mul(state[0], boxes.size)
        for part in range(self.group_shape.keys // _LINE):
            right = (memory.values, k.add(start, part * boxes.wide * boxes.box))
            left = packed[STEPS * part : STEPS * (part + 1)]
            results = k.value(WarpgroupMmaRegistersOp(self.kind, results, left, right, lines(self.columns)))
        return results

    def add_values(self, results: SSAValue, weights: SSAValue, stage: Stage) -> SSAValue:
        return self.k.value(WarpgroupAccumulatorsOp(self._start_values(results, self._packed(weights), stage)))

    def write(
        self, results: SSAValue, op: AttentionOp, out: Walk, first: SSAValue, batch: Sequence[SSAValue], wide: bool
    ) -> None:
        """Store the results; with `wide` a thread's neighbouring ones are one access."""
        k, per_row = self.k, lines(self.columns) // 4
        joined = k.value(JoinColumnsOp(results, _WIDTH))
        base, buffer = batch_offset(k, batch, out), k.buffer(op.output, out.offset)
        column = k.mul(k.rem(self.lane, 4), _WIDTH)
        for half in range(2):
            query = k.add(k.add(first, self.first_row), k.add(k.div(self.lane, 4), 8 * half))
            exists = None
            if not isinstance(op.queries, int) or op.queries % self.group_shape.queries:
                exists = k.compare("slt", query, k.size(op.queries))
            row = k.add(base, k.mul(query, k.stride(out.query)))
            for piece in range(per_row // _WIDTH):
                here = k.add(column, 4 * _WIDTH * piece)
                part = k.value(FragmentPartOp(joined, half * per_row + _WIDTH * piece, _WIDTH))
                inside = exists
                if 4 * _WIDTH * (piece + 1) > self.columns:
                    inside = k.both(exists, k.compare("slt", here, self.columns))
                at = k.add(row, k.mul(here, k.stride(out.column)))
                store = StoreFragmentOp(self._rounded(part, op), buffer, at, range(_WIDTH), wide=wide)
                if inside is None:
                    k.insert(store)
                else:
                    k.when(inside, lambda store=store: _ignore(k.insert(store)))

    def _rounded(self, part: SSAValue, op: AttentionOp) -> SSAValue:
        k, element = self.k, element_of(op.output.type)
        rounded = MapFragmentOp([part], element, _WIDTH)
        with k.inside(rounded.body.block):
            (value,) = rounded.body.block.args
            k.insert(YieldOp(operands=[[k.scalars(element).cast(value, f32)]]))
        return k.value(rounded)


def _ignore(op: object) -> None:
    """For what is only inserted."""
