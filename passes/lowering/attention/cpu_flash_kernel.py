"""The code of attention on register tiles: workers share heads and blocks of queries.

For each head a worker copies keys and values into a place of its own, vectors side by side. For a few queries at a time
it computes their scores with all keys into a strip of memory that stays in its cache, turns them into weights there,
and adds up the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerAttr, f32, i64
from xdsl.ir import SSAValue

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.kernel.core import LoadOp, ParallelOp, ReduceKind, ReduceOp, StoreOp, YieldOp
from mlirt.dialects.kernel.tile import TileForEachOp
from mlirt.dialects.kernel.tile_products import TileMultiplyAddOp
from mlirt.dialects.kernel.worker import WorkerShareOp, WorkerSlotOp, slots_for
from mlirt.dialects.symbolic import Dim, ceil_div, product
from mlirt.passes.lowering.attention.cpu_code import Places
from mlirt.passes.lowering.attention.cpu_packing import CpuPacking
from mlirt.passes.lowering.attention.cpu_shape import CpuShape
from mlirt.passes.lowering.attention.walks import Walk, Walks
from mlirt.passes.lowering.lowering import KernelBuilder


class CpuFlashKernel(CpuPacking):
    """A kernel under construction. Each head is cut into `blocks` tasks of consecutive tiles of queries."""

    def __init__(self, k: KernelBuilder, op: AttentionOp, walks: Walks, shape: CpuShape, blocks: Dim) -> None:
        super().__init__(k, op, walks, shape)
        self.blocks = blocks

    def write(self, scratch: SSAValue) -> None:
        """The whole kernel.

        first, last = share(heads * blocks)
        for head in range(first // blocks, ceil(last / blocks)):
            pack keys and values; for each tile of queries of this head's tasks: scores, weights, results
        """
        k = self.k
        count = product(self.op.batch) * self.blocks
        tasks = self.size("tasks", count)
        share = k.insert(WorkerShareOp(tasks))
        share.first.name_hint, share.last.name_hint = "first", "last"
        memory = self.named(k.memory(scratch, f32), "memory")

        def work() -> None:
            blocks = self.size("blocks", self.blocks)
            slot = self.named(k.value(WorkerSlotOp(tasks, self.size("slots", slots_for(count)))), "slot")
            start = k.mul(slot, self.size("slot_size", self.scratch_elements))
            places = Places(self, memory, self.named(start, "keys_at"))
            start, stop = k.div(share.first, blocks), k.ceil_div(share.last, blocks)
            k.count(start, stop, 1, "head", lambda head: self._head(head, share, places))

        # A worker without tasks has no memory to pack into.
        k.when(k.compare("slt", share.first, share.last), work)

    def _head(self, head: SSAValue, share: WorkerShareOp, places: Places) -> None:
        k, blocks = self.k, self.size("blocks", self.blocks)
        batch = self._batch(head)
        self.pack_keys(batch, places)
        self.pack_values(batch, places)
        tiles = ceil_div(self.op.queries, self.shape.rows)
        per_block = self.size("tiles_per_block", ceil_div(tiles, self.blocks))
        before = k.mul(head, blocks)
        low = k.mul(k.max(k.sub(share.first, before), 0), per_block)
        high = k.min(k.mul(k.min(k.sub(share.last, before), blocks), per_block), self.size("tiles", tiles))
        k.count(
            self.named(low, "low"), self.named(high, "high"), 1, "tile", lambda tile: self._tile(batch, tile, places)
        )

    def _batch(self, head: SSAValue) -> list[SSAValue]:
        k, rest, indices = self.k, head, list[SSAValue]()
        for extent in reversed(self.op.batch[1:]):
            length = k.size(extent)
            indices.append(self.named(k.rem(rest, length), "batch"))
            rest = self.named(k.div(rest, length), "batch")
        return [rest, *reversed(indices)][: len(self.op.batch)]

    # --- a few queries

    def _tile(self, batch: Sequence[SSAValue], tile: SSAValue, places: Places) -> None:
        k, shape = self.k, self.shape
        query = self.named(k.mul(tile, shape.rows), "query")
        rows = None
        if not isinstance(self.op.queries, int) or self.op.queries % shape.rows:
            rows = self.named(k.min(k.sub(self.size("queries", self.op.queries), query), shape.rows), "rows")
        seen = self._seen(k.add(query, shape.rows - 1 if rows is None else k.sub(rows, 1)))
        self._scores(batch, query, rows, seen, places)
        count = k.constant(shape.rows) if rows is None else rows
        k.count(k.constant(0), count, 1, "row", lambda row: self._weights(k.add(query, row), row, seen, places))
        self._results(batch, query, rows, seen, places)

    def _seen(self, query: SSAValue) -> SSAValue:
        """How many keys count for a query."""
        k, keys, offset = self.k, self.size("keys", self.op.keys), self.op.last_key_offset()
        if offset is None:
            return keys
        return self.named(k.max(k.min(k.add(query, self.size("past", offset + 1)), keys), 0), "seen")

    def _scores(
        self, batch: Sequence[SSAValue], query: SSAValue, rows: SSAValue | None, seen: SSAValue, places: Places
    ) -> None:
        """Scores of all rows with the keys that some row sees."""
        k, walk, shape, depth = self.k, self.walks.query, self.shape, self.op.depth
        at = self.named(k.add(self.address(batch, walk), k.mul(query, k.stride(walk.query))), "query_at")
        row_step, step = k.index(k.stride(walk.query)), k.index(k.stride(walk.depth))
        panel_size = self.size("panel_size", depth * shape.width)

        def panel(number: SSAValue) -> None:
            keys_at = self.named(k.add(places.keys, k.mul(number, panel_size)), "panel_at")

            def add(unrolled: int) -> Callable[[SSAValue, SSAValue], SSAValue]:
                def body(e: SSAValue, sums: SSAValue) -> SSAValue:
                    x_at, w_at = k.add(at, k.mul(e, step)), k.add(keys_at, k.mul(e, shape.width))
                    operands = (sums, self.buffer(walk), x_at, row_step, step, places.memory, w_at)
                    return k.value(TileMultiplyAddOp(*operands, unrolled, rows))

                return body

            key = self.named(k.mul(number, shape.width), "key")
            self._store_scores(self.sum_over("depth", depth, add), batch, query, key, rows, places)

        k.count(k.constant(0), self.named(k.ceil_div(seen, shape.width), "panels"), 1, "panel", panel)

    def _store_scores(
        self,
        tile: SSAValue,
        batch: Sequence[SSAValue],
        query: SSAValue,
        key: SSAValue,
        rows: SSAValue | None,
        places: Places,
    ) -> None:
        k, lanes = self.k, self.shape.lanes
        valid = None
        if self.walks.extras and (not isinstance(self.op.keys, int) or self.op.keys % self.shape.width):
            valid = self.named(k.sub(self.size("keys", self.op.keys), key), "valid")
        each = TileForEachOp(tile, rows, valid)
        element, row, vector, lane = each.body.block.args
        pitch = self.size("pitch", self.pitch)
        with k.inside(each.body.block):
            at_query, at_key = k.add(query, row), k.add(key, k.mul(vector, lanes))
            more = [self._extra(walk, batch, at_query, at_key, lane) for walk in self.walks.extras]
            indices = [*batch, at_query, k.add(at_key, lane)]
            (score,) = k.inline(self.op.score, [element, *more], indices)
            place = [places.scores, row, at_key, lane]
            k.insert(StoreOp(score, places.memory, place, [1, pitch, 1, 1]))
            k.insert(YieldOp(operands=[[]]))
        k.insert(each)

    def _extra(self, walk: Walk, batch: Sequence[SSAValue], query: SSAValue, key: SSAValue, lane: SSAValue) -> SSAValue:
        k = self.k
        steps = [k.stride(step) for step in (*walk.batch, walk.query, walk.key, walk.key)]
        return k.value(LoadOp(self.buffer(walk), [*batch, query, key, lane], steps))

    def _weights(self, query: SSAValue, row: SSAValue, seen: SSAValue, places: Places) -> None:
        """Exponentials in the place of a row's scores, and one over their sum; zeros for keys that do not count."""
        k, pitch = self.k, self.size("pitch", self.pitch)
        at = self.named(k.add(places.scores, k.mul(row, pitch)), "row_at")
        own = self._seen(query)
        largest = self._reduced(ReduceKind.MAX, own, k.constant(float("-inf"), f32), at, places)
        none = k.value(arith.CmpfOp(largest, k.constant(float("-inf"), f32), "oeq"))
        shift = self.named(k.value(arith.SelectOp(none, k.constant(0.0, f32), largest)), "shift")

        def exponential(index: SSAValue) -> SSAValue:
            score = k.value(LoadOp(places.memory, [at, index], [1, 1]))
            return k.value(math.ExpOp(k.value(arith.SubfOp(score, shift))))

        self._over_lanes(own, at, exponential, places)
        if self.op.last_key is not None:
            rest = self.named(k.sub(seen, own), "rest_of_row")
            self._over_lanes(rest, self.named(k.add(at, own), "rest_at"), lambda _: k.constant(0.0, f32), places)
        total = self._reduced(ReduceKind.ADD, own, k.constant(0.0, f32), at, places)
        factor = k.value(arith.DivfOp(k.constant(1.0, f32), total))
        if self.op.zero_masked.value.data:
            exists = k.value(arith.CmpfOp(total, k.constant(0.0, f32), "ogt"))
            factor = k.value(arith.SelectOp(exists, factor, k.constant(0.0, f32)))
        k.insert(StoreOp(factor, places.memory, [places.factors, row], [1, 1]))

    def _reduced(self, kind: ReduceKind, count: SSAValue, init: SSAValue, at: SSAValue, places: Places) -> SSAValue:
        k, op = self.k, ReduceOp(kind, [count], init)
        op.attributes["lanes"] = IntegerAttr(self.shape.lanes, i64)
        with k.inside(op.body.block):
            value = k.value(LoadOp(places.memory, [at, op.body.block.args[0]], [1, 1]))
            k.insert(YieldOp(operands=[[value]]))
        return self.named(k.value(op), "largest" if kind is ReduceKind.MAX else "total")

    def _over_lanes(self, count: SSAValue, at: SSAValue, value: Callable[[SSAValue], SSAValue], places: Places) -> None:
        k, op = self.k, ParallelOp([count])
        op.attributes["lanes"] = IntegerAttr(self.shape.lanes, i64)
        index = op.body.block.args[0]
        with k.inside(op.body.block):
            k.insert(StoreOp(value(index), places.memory, [at, index], [1, 1]))
            k.insert(YieldOp(operands=[[]]))
        k.insert(op)

    def _results(
        self, batch: Sequence[SSAValue], query: SSAValue, rows: SSAValue | None, seen: SSAValue, places: Places
    ) -> None:
        """Weights times values, times one over the sum of the weights."""
        k, shape, out = self.k, self.shape, self.walks.out
        pitch, one = self.size("pitch", self.pitch), k.constant(1)
        bounds = None if self.op.last_key is None else self.unrolled(seen)
        base = k.add(self.address(batch, out), k.mul(query, k.stride(out.query)))
        for part in range(self.columns // shape.width):
            values_at = self.named(self.part_of_values(places.values, part), "values_at")

            def add(unrolled: int, values_at: SSAValue = values_at) -> Callable[[SSAValue, SSAValue], SSAValue]:
                def body(key: SSAValue, sums: SSAValue) -> SSAValue:
                    x_at, w_at = k.add(places.scores, key), k.add(values_at, k.mul(key, shape.width))
                    operands = (sums, places.memory, x_at, pitch, one, places.memory, w_at)
                    return k.value(TileMultiplyAddOp(*operands, unrolled, rows))

                return body

            tile = self.sum_over("keys", self.op.keys, add, bounds)
            self._store_results(tile, self.named(k.add(base, part * shape.width), "out_at"), rows, places)

    def _store_results(self, tile: SSAValue, at: SSAValue, rows: SSAValue | None, places: Places) -> None:
        k, lanes, out = self.k, self.shape.lanes, self.walks.out
        each = TileForEachOp(tile, rows, None)
        element, row, vector, lane = each.body.block.args
        with k.inside(each.body.block):
            factor = k.value(LoadOp(places.memory, [places.factors, row], [1, 1]))
            value = k.value(arith.MulfOp(element, factor))
            k.insert(StoreOp(value, self.buffer(out), [at, row, vector, lane], [1, k.stride(out.query), lanes, 1]))
            k.insert(YieldOp(operands=[[]]))
        k.insert(each)
