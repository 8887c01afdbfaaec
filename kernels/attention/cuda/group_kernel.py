"""The code of a block of warpgroups that compute attention while one thread lets the device copy what they need.

Each warpgroup multiplies its 64 queries by a tile of keys, turns the scores into weights in registers, and multiplies
these by the values. While one warpgroup computes exponentials the matrix units work for another one.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.kernel.accumulators import PackAccumulatorsOp
from mlirt.dialects.kernel.warpgroup import (
    ROWS,
    WARPGROUP,
    JoinColumnsOp,
    WarpgroupAccumulatorsOp,
)
from mlirt.dialects.kernel.warpgroup_registers import STEPS, WarpgroupMmaRegistersOp
from mlirt.kernels.attention.cuda.flash_scores import FlashScores, Fragments
from mlirt.kernels.attention.cuda.flash_softmax import FlashSoftmax, Range, Stage
from mlirt.kernels.attention.cuda.flash_tiles import batch_offset
from mlirt.kernels.attention.cuda.group_copies import GroupMemory, Work
from mlirt.kernels.attention.cuda.group_shape import GroupShape, lines
from mlirt.kernels.attention.results import finished_results
from mlirt.kernels.attention.walks import Walk
from mlirt.kernels.lib.language import Index, Value, builder, kernel
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.hopper_words import SharedTile, wgmma
from mlirt.kernels.lib.language.simt_words import Access, part_of, store_fragment, zeros
from mlirt.kernels.lib.language.words import extent, place, static_range, stride

_LINE = 64  # elements
_STEP = 16  # keys of a left fragment
_WIDTH = 8  # neighbouring results that a thread writes


class GroupKernel(FlashSoftmax):
    """What the warpgroups that multiply do; `group` is the number of this thread's."""

    def __init__(
        self,
        shape: GroupShape,
        element: Attribute,
        columns: int,
        memory: GroupMemory,
        group: Value,
        thread: Value,
        zero_masked: bool,
    ) -> None:
        super().__init__(shape, element, thread, zero_masked)
        self.group_shape, self.columns, self.memory, self.group, self.thread = shape, columns, memory, group, thread

    @kernel
    def results(self, work: Work, scores: FlashScores, done: Index | None = None) -> Value:
        """The accumulators of the warpgroup's results; so many tiles of keys were `done` before."""
        self.memory.queries_here[0].wait(0 if work.number is None else work.number % 2)
        compute = self._overlapping if self.group_shape.overlaps else self._one_after_the_other
        results, total = compute(work.tiles, scores, done)
        return self.normalized(results, total)

    @kernel
    def _one_after_the_other(self, tiles: Range, scores: FlashScores, done: Index | None) -> tuple[Value, Value]:
        """`for each tile { scores; weights; results += weights * values }`."""
        results, largest, total = self.start(lines(self.columns) // 2)
        for tile in range(tiles.count):
            state = self.memory.pipeline_state(place(tile), done)
            started, read = self._start_products(state), scores.read(place(tile))
            products = emit(WarpgroupAccumulatorsOp(started))
            score = self._score(products, read, scores, place(tile), tiles)
            results, largest, total = self.step(score, [results, largest, total], scores.scale, state)
            self._give_back(state[0])
        self._give_back_queries()
        return results, total

    @kernel
    def _overlapping(self, tiles: Range, scores: FlashScores, done: Index | None) -> tuple[Value, Value]:
        """The scores of a tile are under way before the values of the tile before it.

        scores of tile 0; weights
        for each further tile { start scores; start results += weights * values before; wait for the scores;
                                new weights; wait for the results; results *= falls }
        results += weights * values
        """
        memory, (results, largest, total) = self.memory, self.start(lines(self.columns) // 2)
        self._wait_for_order(place(0), done)
        started = self._start_products(memory.pipeline_state(place(0), done))
        self._let_next_start()
        read = scores.read(place(0))
        products = emit(WarpgroupAccumulatorsOp(started))
        self._give_back_keys(memory.pipeline_state(place(0), done)[0])
        weighed = self.weigh(self._score(products, read, scores, place(0), tiles), largest, total, scores.scale)
        largest, total, packed = weighed.largest, weighed.total, self._packed(weighed.weights)
        rest = tiles.count - 1
        for number in range(rest):
            tile, before = place(number + 1), memory.pipeline_state(place(number), done)
            self._wait_for_order(tile, done)
            started = self._start_products(memory.pipeline_state(tile, done))
            results = self._start_values(results, packed, before)
            self._let_next_start()
            read = scores.read(tile)
            score = emit(WarpgroupAccumulatorsOp(started, self.group_shape.keys // _LINE))
            self._give_back_keys(memory.pipeline_state(tile, done)[0])
            added = self.weigh(self._score(score, read, scores, tile, tiles), largest, total, scores.scale)
            results = self.scaled(emit(WarpgroupAccumulatorsOp(results)), added.falls)
            self._give_back(before[0])
            largest, total, packed = added.largest, added.total, self._packed(added.weights)
        self._give_back_queries()
        last = memory.pipeline_state(rest, done)
        results = emit(WarpgroupAccumulatorsOp(self._start_values(results, packed, last)))
        if self.group_shape.stays:
            self._give_back(last[0])
        return results, total

    def _score(
        self, products: Value, read: Sequence[Fragments], scores: FlashScores, tile: Value, tiles: Range
    ) -> Value:
        return self.limited(scores.scores(products, tile, read), scores, tile, tiles)

    @kernel
    def _wait_for_order(self, tile: Value, done: Index | None) -> None:
        """Where warpgroups take turns: the one before has started its products, those of the turn before for the first.

        Barriers tell phases apart by parity; the phase before the first one counts as ended.
        """
        if self.memory.order is not None:
            turn = tile if done is None else tile + done
            self.memory.order[self.group].wait((turn + 1 + min(self.group, 1)) % 2)

    @kernel
    def _let_next_start(self) -> None:
        """The next warpgroup may start its products."""
        if self.memory.order is not None:
            if self.thread % WARPGROUP == 0:
                self.memory.order[(self.group + 1) % self.group_shape.groups].arrive()

    @kernel
    def _give_back(self, stage: Value) -> None:
        """Nobody in this warpgroup reads a stage any more."""
        if self.thread % WARPGROUP == 0:
            self.memory.empty[stage].arrive()

    @kernel
    def _give_back_keys(self, stage: Value) -> None:
        """Where keys have stages of their own, nobody in this warpgroup reads those of a stage any more."""
        if self.memory.keys_read is not None:
            if self.thread % WARPGROUP == 0:
                self.memory.keys_read[stage].arrive()

    @kernel
    def _give_back_queries(self) -> None:
        """Where a block stays, this warpgroup does not read its queries any more."""
        if self.memory.queries_read is not None:
            if self.thread % WARPGROUP == 0:
                self.memory.queries_read[0].arrive()

    @kernel
    def _start_products(self, state: Stage) -> Value:
        """Queries times the keys of a stage."""
        (stage, parity), memory, keys = state, self.memory, self.group_shape.keys
        memory.keys_here[stage].wait(parity)
        queries, boxes, accumulators = memory.query_boxes, memory.key_boxes, zeros(f32, keys // 2)
        start, own = stage * boxes.size, self.group * (ROWS * _LINE)
        for line in static_range(boxes.wide):
            left = SharedTile(memory.queries, own + line * queries.box)
            right = SharedTile(memory.keys, start + line * boxes.box)
            accumulators = wgmma(self.kind, accumulators, left, right, keys)
        return accumulators

    @kernel
    def _packed(self, weights: Value) -> list[Value]:
        """Weights as left fragments, one for each 16 keys."""
        steps = static_range(self.group_shape.keys // _STEP)
        return [emit(PackAccumulatorsOp(self.kind, weights, 1, step)) for step in steps]

    @kernel
    def _start_values(self, results: Value, packed: Sequence[Value], state: Stage) -> Value:
        """The results plus weights times the values of a stage."""
        (stage, parity), memory, boxes = state, self.memory, self.memory.value_boxes
        memory.values_here[stage].wait(parity)
        start = stage * boxes.size
        for part in static_range(self.group_shape.keys // _LINE):
            right = (memory.values, place(start + part * boxes.wide * boxes.box))
            left = packed[STEPS * part : STEPS * (part + 1)]
            results = emit(WarpgroupMmaRegistersOp(self.kind, results, left, right, lines(self.columns)))
        return results

    def add_values(self, results: Value, weights: Value, stage: Stage) -> Value:
        return emit(WarpgroupAccumulatorsOp(self._start_values(results, self._packed(weights), stage)))

    @kernel
    def write(
        self, results: Value, op: AttentionOp, out: Walk, first: Value, batch: Sequence[Value], wide: bool
    ) -> None:
        """Store the results; with `wide` a thread's neighbouring ones are one access."""
        per_row, joined = lines(self.columns) // 4, emit(JoinColumnsOp(results, _WIDTH))
        base, output = batch_offset(batch, out), builder().buffer(op.output, out.offset)
        column = self.lane % 4 * _WIDTH
        is_whole = isinstance(op.queries, int) and op.queries % self.group_shape.queries == 0
        for half in static_range(2):
            query = first + self.first_row + (self.lane // 4 + 8 * half)
            exists = is_whole or query < extent(op.queries)
            row = base + query * stride(out.query)
            for piece in static_range(per_row // _WIDTH):
                here = column + 4 * _WIDTH * piece
                part = part_of(joined, half * per_row + _WIDTH * piece, _WIDTH)
                inside = exists and (4 * _WIDTH * (piece + 1) <= self.columns or here < self.columns)
                at, rounded = row + here * stride(out.column), finished_results(op, part)
                if inside:
                    store_fragment(rounded, output, at, Access(static_range(_WIDTH), wide=wide))
