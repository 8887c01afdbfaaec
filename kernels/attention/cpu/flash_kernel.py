"""The code of attention on register tiles: workers share heads and blocks of queries.

For each head a worker copies keys and values into a place of its own, vectors side by side. For a few queries at a time
it computes their scores with all keys into a strip of memory that stays in its cache, turns them into weights there,
and adds up the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.kernel.worker import slots_for
from mlirt.dialects.symbolic import Dim, product
from mlirt.kernels.attention.walks import Walk, Walks
from mlirt.kernels.lib.epilogue import finished
from mlirt.kernels.lib.language import Index, Value, build, kernel, value_of
from mlirt.kernels.lib.language.tile_words import (
    elements,
    fill,
    lane_loop,
    lane_reduction,
    load,
    load_transposed,
    multiply_add,
    share,
    slot,
)
from mlirt.kernels.lib.language.words import ceil_div, exp, place, size, static_range, stride, strided
from mlirt.kernels.lib.tactics.lowering import KernelBuilder
from mlirt.kernels.lib.tile import RegisterTile

_UNROLLED = 4
_FACTORS = 16  # room for one of each row, such that vectors stay aligned
# (accumulators, the number of a step, how many steps) -> the accumulators after these steps
Add = Callable[[Value, Index, int], Value]


@dataclass(frozen=True)
class Places:
    """Where the parts of a worker's memory start."""

    memory: Value
    keys: Value
    values: Value
    scores: Value
    factors: Value


class CpuFlashKernel:
    """A kernel under construction. Each head is cut into `blocks` tasks of consecutive tiles of queries."""

    def __init__(
        self, k: KernelBuilder, op: AttentionOp, walks: Walks, tile: RegisterTile, lanes: int, blocks: Dim
    ) -> None:
        k.keeps_names = True
        self.k, self.op, self.walks, self.tile, self.blocks = k, op, walks, tile, blocks
        self.lanes, self.width = lanes, tile.width(lanes)
        columns = op.columns
        assert isinstance(columns, int)
        self.columns = columns
        self.pitch = ceil_div(op.keys, self.width) * self.width
        """Elements of a row of scores."""

    @property
    def scratch_elements(self) -> Dim:
        """The memory of a worker: keys, values, scores, and a factor for each row."""
        return self.pitch * (self.op.depth + self.columns + self.tile.rows) + _FACTORS

    def write(self, scratch: SSAValue) -> None:
        """The whole kernel."""
        build(self.k, self._tasks, scratch)

    @kernel
    def _tasks(self, scratch: SSAValue) -> None:
        op, rows, pitch = self.op, self.tile.rows, self.pitch
        count = product(op.batch) * self.blocks
        tasks = size("tasks", count)
        first, last = share(tasks)
        memory = value_of(self.k.memory(scratch, f32))
        if first < last:  # a worker without tasks has no memory to pack into
            blocks = size("blocks", self.blocks)
            own = slot(tasks, size("slots", slots_for(count)))
            keys_at = own * size("slot_size", self.scratch_elements)
            values_at = keys_at + size("keys_size", pitch * op.depth)
            scores_at = values_at + size("values_size", pitch * self.columns)
            factors_at = scores_at + size("scores_size", pitch * rows)
            places = Places(memory, keys_at, values_at, scores_at, factors_at)
            for head in range(first // blocks, ceil_div(last, blocks)):
                batch = self._batch(head)
                self._pack_keys(batch, places)
                self._pack_values(batch, places)
                tiles = ceil_div(op.queries, rows)
                per_block = size("tiles_per_block", ceil_div(tiles, self.blocks))
                before = head * blocks
                low = max(first - before, 0) * per_block
                high = min(min(last - before, blocks) * per_block, size("tiles", tiles))
                for tile in range(low, high):
                    self._tile(batch, tile, places)

    @kernel
    def _batch(self, head: Index) -> list[Index]:
        batch, indices = head, list[Index]()
        for extent in reversed(self.op.batch[1:]):
            length = value_of(self.k.size(extent))
            indices = [batch % length, *indices]
            batch = batch // length
        return [batch, *indices][: len(self.op.batch)]

    # --- keys and values in a place where vectors lie side by side

    @kernel
    def _pack_keys(self, batch: Sequence[Index], places: Places) -> None:
        """Panels of keys, each `[depth, width]`: squares of `lanes` keys are transposed."""
        walk, lanes, width, depth = self.walks.key, self.lanes, self.width, self.op.depth
        base, step = self.address(batch, walk), stride(walk.key)
        panel_size = size("panel_size", depth * width)
        for square in range(size("squares", ceil_div(self.op.keys, lanes))):
            key = square * lanes
            to = places.keys + key // width * panel_size + key % width
            start = base + key * step
            rows = size("keys", self.op.keys) - key
            for at in range(0, size("depth", depth), lanes):
                left = size("depth", depth) - at
                tile = load_transposed(walk.buffer(self.k), start + at, step, lanes, rows, left)
                row_at = to + at * width
                self._keep(tile, places.memory, row_at, width, left)

    @kernel
    def _pack_values(self, batch: Sequence[Index], places: Places) -> None:
        """Values as `[part, keys, width]`, the columns cut into parts of a tile's width."""
        walk, width = self.walks.values, self.width
        base, step = self.address(batch, walk), stride(walk.key)
        for part in static_range(self.columns // width):
            start = base + part * width
            to = self.part_of_values(places.values, part)
            for key in range(size("keys", self.op.keys)):
                tile = load(walk.buffer(self.k), start + key * step, 0, (1, self.tile.vectors, self.lanes))
                row_at = to + key * width
                self._keep(tile, places.memory, row_at, 0, None)

    @kernel
    def _keep(self, tile: Value, memory: Value, to: Value, row_step: int, rows: Value | None) -> None:
        kept = strided(memory, 1, row_step, self.lanes, 1)
        for element, row, vector, lane in elements(tile, rows):
            kept[to, row, vector, lane] = element

    # --- a few queries

    @kernel
    def _tile(self, batch: Sequence[Index], tile: Index, places: Places) -> None:
        op, shape = self.op, self.tile
        query, is_whole = tile * shape.rows, isinstance(op.queries, int) and op.queries % shape.rows == 0
        rows = None if is_whole else value_of(min(size("queries", op.queries) - query, shape.rows))
        seen = self._seen(query + (shape.rows - 1 if rows is None else rows - 1))
        self._scores(batch, query, rows, seen, places)
        for row in range(shape.rows if rows is None else rows):
            self._weights(query + row, row, seen, places)
        self._results(batch, query, rows, seen, places)

    @kernel
    def _seen(self, query: Index) -> Value:
        """How many keys count for a query."""
        keys, offset = size("keys", self.op.keys), self.op.last_key_offset()
        if offset is None:
            return keys
        seen = max(min(query + size("past", offset + 1), keys), 0)
        return value_of(seen)

    @kernel
    def _scores(self, batch: Sequence[Index], query: Index, rows: Value | None, seen: Value, places: Places) -> None:
        """Scores of all rows with the keys that some row sees."""
        walk, width, depth = self.walks.query, self.width, self.op.depth
        query_at = self.address(batch, walk) + query * stride(walk.query)
        row_step, step = stride(walk.query), stride(walk.depth)
        panel_size = size("panel_size", depth * width)

        for panel in range(ceil_div(seen, width)):
            panel_at = places.keys + panel * panel_size

            def add(accumulators: Value, e: Index, count: int) -> Value:
                x_at, w_at = query_at + e * step, panel_at + e * width
                return multiply_add(
                    accumulators, walk.buffer(self.k), x_at, (row_step, step), places.memory, w_at, count, rows
                )

            key = panel * width
            accumulators = self._sum_over("depth", depth, add)
            self._store_scores(accumulators, batch, query, key, rows, places)

    @kernel
    def _store_scores(
        self, accumulators: Value, batch: Sequence[Index], query: Index, key: Index, rows: Value | None, places: Places
    ) -> None:
        op, extras = self.op, self.walks.extras
        is_whole = isinstance(op.keys, int) and op.keys % self.width == 0
        valid = size("keys", op.keys) - key if extras and not is_whole else None
        scores = strided(places.memory, 1, size("pitch", self.pitch), 1, 1)
        for element, i, vector, lane in elements(accumulators, rows, valid):
            at_query, at_key = query + i, key + vector * self.lanes
            more = [self._extra(walk, batch, at_query, at_key, lane) for walk in extras]
            position = [*batch, at_query, at_key + lane]
            score = finished(op.score, element, more, len(position), lambda axis: position[axis])
            scores[places.scores, i, at_key, lane] = score

    @kernel
    def _extra(self, walk: Walk, batch: Sequence[Index], query: Value, key: Value, lane: Value) -> Value:
        steps = [stride(step) for step in (*walk.batch, walk.query, walk.key, walk.key)]
        return strided(walk.buffer(self.k), *steps)[*batch, query, key, lane]

    @kernel
    def _weights(self, query: Index, row: Index, seen: Value, places: Places) -> None:
        """Exponentials in the place of a row's scores, and one over their sum; zeros for keys that do not count."""
        lanes, memory = self.lanes, strided(places.memory, 1, 1)
        row_at = places.scores + row * size("pitch", self.pitch)
        own = self._seen(query)
        largest = lane_reduction(ReduceKind.MAX, own, lanes, float("-inf"), lambda i: memory[row_at, i])
        shift = 0.0 if largest == float("-inf") else largest
        for i in lane_loop(own, lanes):
            memory[row_at, i] = exp(memory[row_at, i] - shift)
        if self.op.last_key is not None:
            rest, rest_at = seen - own, row_at + own
            for i in lane_loop(rest, lanes):
                memory[rest_at, i] = 0.0
        total = lane_reduction(ReduceKind.ADD, own, lanes, 0.0, lambda i: memory[row_at, i])
        factor = 1.0 / total
        if self.op.zero_masked.value.data:
            factor = factor if total > 0.0 else 0.0
        memory[places.factors, row] = factor

    @kernel
    def _results(self, batch: Sequence[Index], query: Index, rows: Value | None, seen: Value, places: Places) -> None:
        """Weights times values, times one over the sum of the weights."""
        out, memory, width = self.walks.out, places.memory, self.width
        pitch = size("pitch", self.pitch)
        bounds = None if self.op.last_key is None else (seen // _UNROLLED * _UNROLLED, seen)
        base = self.address(batch, out) + query * stride(out.query)
        for part in static_range(self.columns // width):
            values_at = self.part_of_values(places.values, part)

            def add(accumulators: Value, key: Index, count: int) -> Value:
                x_at, w_at = places.scores + key, values_at + key * width
                return multiply_add(accumulators, memory, x_at, (pitch, 1), memory, w_at, count, rows)

            accumulators = self._sum_over("keys", self.op.keys, add, bounds)
            out_at = base + part * width
            for element, i, vector, lane in elements(accumulators, rows):
                result = element * strided(memory, 1, 1)[places.factors, i]
                strided(out.buffer(self.k), 1, stride(out.query), self.lanes, 1)[out_at, i, vector, lane] = result

    @kernel
    def _sum_over(self, name: str, extent: Dim, add: Add, bounds: tuple[Value, Value] | None = None) -> Value:
        """A tile of accumulators: several steps at once, then what is left. `bounds` are the end of either."""
        shape, tail = self.tile, bounds is not None or extent % _UNROLLED != 0
        accumulators = fill(0.0, shape.rows, shape.vectors, self.lanes)
        if bounds is None:
            bounds = size(f"whole_{name}", extent // _UNROLLED * _UNROLLED), size(name, extent)
        for k in range(0, bounds[0], _UNROLLED):
            accumulators = add(accumulators, k, _UNROLLED)
        if tail:
            for k in range(bounds[0], bounds[1]):
                accumulators = add(accumulators, k, 1)
        return accumulators

    @kernel
    def part_of_values(self, values: Value, part: int) -> Value:
        """Where the packed values of a part of the columns start."""
        return values + size("part_size", self.pitch * self.width) * part

    @kernel
    def address(self, batch: Sequence[Index], walk: Walk) -> Value:
        """Where the elements of a batch entry start."""
        return place(sum([index * stride(step) for index, step in zip(batch, walk.batch, strict=True)]))
