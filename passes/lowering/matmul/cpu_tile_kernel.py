"""The kernel of a matrix product on register tiles: workers share the tiles, column by column of tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Block, Region, SSAValue

from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.kernel.core import LoadOp, StoreOp, YieldOp
from mlirt.dialects.kernel.tile import TileFillOp, TileForEachOp
from mlirt.dialects.kernel.tile_products import TileDotAddOp, TileMultiplyAddOp
from mlirt.dialects.kernel.worker import WorkerShareOp, WorkerSlotOp, slots_for
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.passes.lowering.kernel_builder import Stride
from mlirt.passes.lowering.loops.reduction_nest import indices_in
from mlirt.passes.lowering.lowering import KernelBuilder
from mlirt.passes.lowering.matmul.cpu_product import Product, Walk
from mlirt.passes.lowering.matmul.cpu_tile_choice import TileShape, tail_rows
from mlirt.passes.lowering.register_tiles.named_code import NamedCode

_UNROLLED = 4


@dataclass(frozen=True)
class Place:
    """A tile in the product: indices along the batches, and its first row and column."""

    batches: list[SSAValue]
    row: SSAValue
    column: SSAValue


@dataclass(frozen=True)
class Vectors:
    """Where the tile's vectors of the right operand lie: those of step k from element `at + k * step` of `buffer`."""

    buffer: SSAValue
    at: SSAValue
    step: Stride


# (kernel, number of a panel, slot of the worker, where the panel starts) -> where its vectors lie.
Panels = Callable[["TileKernel", SSAValue, SSAValue, Place], Vectors]


class TileKernel(NamedCode):
    """A kernel under construction. Each (batch, panel) pair is cut into `blocks` tasks of consecutive row tiles."""

    def __init__(
        self,
        k: KernelBuilder,
        op: MatmulOp,
        product: Product,
        shape: TileShape,
        lanes: int,
        blocks: Dim | None,
        word: int = 1,
    ) -> None:
        super().__init__(k)
        self.op, self.product, self.shape, self.lanes, self.word = op, product, shape, lanes, word
        self.width = shape.width(lanes)
        self.panels = ceil_div(product.columns, self.width)
        self.row_tiles = ceil_div(product.rows, shape.rows)
        self.blocks = self.row_tiles if blocks is None else blocks
        self.exact = isinstance(product.columns, int) and product.columns % self.width == 0
        self.lhs = self.named(k.buffer(product.lhs.value, product.lhs.offset), "a")
        self._steps: dict[Walk, list[Stride]] = {}

    def write(self, panels: Panels, packs: bool) -> None:
        """The whole kernel.

        first, last = share(pairs * blocks)
        for pair in range(first // blocks, ceil(last / blocks)):
            for each row tile of the blocks of this pair between first and last: tile(..)
        """
        k = self.k
        pairs: Dim = self.panels
        for extent in self.product.batches:
            pairs = pairs * extent
        tasks = self.size("tasks", pairs * self.blocks)
        share = k.insert(WorkerShareOp(tasks))
        share.first.name_hint, share.last.name_hint = "first", "last"
        slot = share.first
        if packs:
            slots = self.size("slots", slots_for(pairs * self.blocks))
            slot = self.named(k.value(WorkerSlotOp(tasks, slots)), "slot")

        def work() -> None:
            start = k.div(share.first, self.size("blocks", self.blocks))
            stop = k.ceil_div(share.last, self.size("blocks", self.blocks))
            k.count(start, stop, 1, "pair", lambda pair: self._pair(pair, share, slot, panels))

        if packs:
            # A worker without tasks has no memory to pack into.
            k.when(k.compare("slt", share.first, share.last), work)
        else:
            work()

    def _pair(self, pair: SSAValue, share: WorkerShareOp, slot: SSAValue, panels: Panels) -> None:
        k = self.k
        batches, panel = self._split(pair)
        column = self.named(k.mul(panel, self.width), "column")
        place = Place(batches, k.constant(0), column)
        vectors = panels(self, panel, slot, place)
        before = k.mul(pair, self.size("blocks", self.blocks))
        low = k.max(k.sub(share.first, before), 0)
        high = k.min(k.sub(share.last, before), self.size("blocks", self.blocks))
        if self.blocks != self.row_tiles:
            tiles_per_block = self.size("tiles_per_block", ceil_div(self.row_tiles, self.blocks))
            low = k.mul(low, tiles_per_block)
            high = k.min(k.mul(high, tiles_per_block), self.size("row_tiles", self.row_tiles))
        self._rows(self.named(low, "low"), self.named(high, "high"), vectors, place)

    def _split(self, pair: SSAValue) -> tuple[list[SSAValue], SSAValue]:
        """The indices along the batches, and the panel, of a pair."""
        k = self.k
        if not self.product.batches:
            return [], pair
        panel = self.named(k.rem(pair, self.size("panel_count", self.panels)), "panel")
        rest = self.named(k.div(pair, self.size("panel_count", self.panels)), "batch")
        indices: list[SSAValue] = []
        for extent in reversed(self.product.batches[1:]):
            length = k.size(extent)
            indices.append(self.named(k.rem(rest, length), "batch"))
            rest = self.named(k.div(rest, length), "batch")
        return [rest, *reversed(indices)], panel

    def _rows(self, low: SSAValue, high: SSAValue, vectors: Vectors, place: Place) -> None:
        """Row tiles low, .., high - 1: whole ones, then smaller ones for the rows that are left."""
        k, rows, height = self.k, self.product.rows, self.shape.rows
        whole = rows // height
        full = self.size("whole_tiles", whole)
        last = high if rows % height == 0 else k.min(high, full)
        k.count(low, last, 1, "tile", lambda tile: self.tile(height, vectors, self.moved(place, k.mul(tile, height))))
        sizes = self.tails()
        if not sizes:
            return

        def rest() -> None:
            row = self.named(k.mul(full, height), "row")
            if len(sizes) == 1 and isinstance(rows, int):
                self.tile(sizes[0], vectors, self.moved(place, row))
                return
            for size in sizes:
                end = self.named(k.add(row, k.mul(k.div(k.sub(self.size("rows", rows), row), size), size)), "end")
                k.count(row, end, size, "row", lambda at, size=size: self.tile(size, vectors, self.moved(place, at)))
                row = end

        k.when(k.compare("sgt", high, full), rest)

    def tails(self) -> tuple[int, ...]:
        """Heights of the tiles for the rows that whole tiles leave."""
        return tail_rows(self.product.rows, self.shape)

    def moved(self, place: Place, row: SSAValue) -> Place:
        return Place(place.batches, self.named(row, "row"), place.column)

    # One tile.

    def tile(self, height: int, vectors: Vectors, place: Place) -> None:
        k, lhs = self.k, self.product.lhs
        *batches, row_step, _, depth_step = self.steps(lhs)
        step = k.index(depth_step)
        at = self.named(self.address([*place.batches, place.row], [*batches, row_step]), "a_at")
        zero = k.constant(0.0, f32) if self.word == 1 else k.constant(0, i32)
        tile = k.value(TileFillOp(zero, height, self.shape.vectors, self.lanes))
        tile.name_hint = "sums"
        row_step = k.index(row_step)
        if self.word > 1:
            self._store(self._sum_of_packed_int8(tile, at, row_step, vectors), height, place)
            return

        def add(depth: int) -> Callable[[SSAValue, SSAValue], SSAValue]:
            def body(number: SSAValue, sums: SSAValue) -> SSAValue:
                a_at = k.add(at, k.mul(number, step))
                w_at = k.add(vectors.at, k.mul(number, vectors.step))
                return k.value(TileMultiplyAddOp(sums, self.lhs, a_at, row_step, step, vectors.buffer, w_at, depth))

            return body

        # Several steps at once need their vectors side by side.
        unrolled = _UNROLLED if vectors.step == self.width else 1
        depth = self.product.depth
        whole = self.size("whole_depth", depth // unrolled * unrolled)
        tile = k.sum_up(k.constant(0), whole, unrolled, tile, add(unrolled))
        if depth % unrolled != 0:
            tile = k.sum_up(whole, self.size("depth", depth), 1, tile, add(1))
        self._store(tile, height, place)

    def _sum_of_packed_int8(self, tile: SSAValue, at: SSAValue, row_step: SSAValue, vectors: Vectors) -> SSAValue:
        """Several bytes of a row at a time; those of the last word that are beyond the row are not read."""
        k, word, depth = self.k, self.word, self.product.depth
        assert isinstance(depth, int)

        def add(count: int, last: int = word) -> Callable[[SSAValue, SSAValue], SSAValue]:
            def body(number: SSAValue, sums: SSAValue) -> SSAValue:
                a_at, w_at = k.add(at, k.mul(number, word)), k.add(vectors.at, k.mul(number, vectors.step))
                return k.value(TileDotAddOp(sums, self.lhs, a_at, row_step, vectors.buffer, w_at, count, last=last))

            return body

        words, rest = divmod(depth, word)
        many, whole = self.size("many_words", words // _UNROLLED * _UNROLLED), self.size("whole_words", words)
        tile = k.sum_up(k.constant(0), many, _UNROLLED, tile, add(_UNROLLED))
        if words % _UNROLLED:
            tile = k.sum_up(many, whole, 1, tile, add(1))
        return add(1, rest)(whole, tile) if rest else tile

    def _store(self, tile: SSAValue, height: int, place: Place) -> None:
        if height == self.shape.rows or self.exact:
            self.either_edge(place.column, lambda valid: self.finish(tile, valid, place))
        else:
            self.finish(tile, self.valid(place.column), place)

    def valid(self, column: SSAValue) -> SSAValue:
        """How many columns are left from one on."""
        return self.named(self.k.sub(self.size("columns", self.product.columns), column), "valid")

    def either_edge(self, column: SSAValue, then: Callable[[SSAValue | None], None]) -> None:
        """`then(None)` where a whole panel of columns is left from `column` on, else `then(number of columns)`."""
        if self.exact:
            then(None)
            return
        k, valid = self.k, self.valid(column)
        whole, part = Block(), Block()
        for block, argument in ((whole, None), (part, valid)):
            with k.inside(block):
                then(argument)
                k.insert(scf.YieldOp())
        k.insert(scf.IfOp(k.compare("sge", valid, self.width), [], Region(whole), Region(part)))

    def finish(self, tile: SSAValue, valid: SSAValue | None, place: Place) -> None:
        """The epilogue on every vector of the tile, and its store."""
        k, product = self.k, self.product
        each = TileForEachOp(tile, None, valid)
        element, row, vector, lane = each.body.block.args
        with k.inside(each.body.block):
            at_row = k.add(place.row, row)
            at_column = k.add(place.column, k.mul(vector, self.lanes))
            position = [*place.batches, at_row, at_column, lane]
            extras = [
                k.value(LoadOp(k.buffer(walk.value, walk.offset), position, self._lane_steps(walk)))
                for walk in product.extras
            ]
            indices = self._indices(place, at_row, at_column, lane)
            (value,) = k.inline(self.op.epilogue, [element, *extras], indices)
            out = product.out
            k.insert(StoreOp(value, k.buffer(out.value, out.offset), position, self._lane_steps(out)))
            k.insert(YieldOp(operands=[[]]))
        k.insert(each)

    def _indices(self, place: Place, row: SSAValue, column: SSAValue, lane: SSAValue) -> list[SSAValue]:
        """The index along each dimension of the result that the epilogue asks for; others are never looked at."""
        needed, axes = indices_in(self.op.epilogue), self.product.axes
        indices = [column] * (axes[-1][0] + 1)
        for loop, group in enumerate(axes[:-1]):
            for axis in needed.intersection(group):
                indices[axis] = [*place.batches, row][loop]
        for axis in needed.intersection(axes[-1]):
            indices[axis] = self.k.add(column, lane)
        return indices

    def steps(self, walk: Walk) -> list[Stride]:
        """The strides along batches, rows, columns and the sum, as arguments where they are not part of the code."""
        if walk not in self._steps:
            self._steps[walk] = [self.k.stride(step) for step in (*walk.batches, walk.row, walk.column, walk.depth)]
        return self._steps[walk]

    def _lane_steps(self, walk: Walk) -> list[Stride]:
        """For indices along batches, rows, the tile's first column, and the lane."""
        *steps, column, _ = self.steps(walk)
        return [*steps, column, column]

    def address(self, indices: Sequence[SSAValue], steps: Sequence[Stride]) -> SSAValue:
        """The sum of index times stride."""
        k = self.k
        total = k.constant(0)
        for index, step in zip(indices, steps, strict=True):
            if step != 0:
                total = k.add(total, k.mul(index, step))
        return total
