"""The kernel of a matrix product on register tiles: workers share the tiles, column by column of tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.packed_contraction import PackedMatmulOp
from mlirt.dialects.kernel.tile_products import FOUR, SIGNED
from mlirt.dialects.kernel.worker import slots_for
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.epilogue import finished
from mlirt.kernels.lib.language import Index, Value, build, kernel, value_of
from mlirt.kernels.lib.language.tile_words import (
    elements,
    fill,
    load,
    multiply_add,
    multiply_add_int8,
    share,
    slot,
)
from mlirt.kernels.lib.language.words import Strided, ceil_div, constant, place, size, strided
from mlirt.kernels.lib.tactics.lowering import KernelBuilder
from mlirt.kernels.lib.tile import RegisterTile
from mlirt.kernels.matmul.cpu.product import Product, Walk
from mlirt.kernels.matmul.cpu.tile_choice import tail_rows

_UNROLLED = 4


@dataclass(frozen=True)
class Place:
    """A tile in the product: indices along the batches, and its first row and column."""

    batches: Sequence[Index]
    row: Index
    column: Index


@dataclass(frozen=True)
class Vectors:
    """Where the tile's vectors of the right operand lie: those of step k from element `at + k * step` of `buffer`."""

    buffer: SSAValue
    at: Value
    step: Index


# (kernel, number of a panel, slot of the worker, where the panel starts) -> where its vectors lie.
Panels = Callable[["TileKernel", Index, Value, Place], Vectors]


class TileKernel:
    """A kernel under construction. Each (batch, panel) pair is cut into `blocks` tasks of consecutive row tiles."""

    def __init__(
        self,
        k: KernelBuilder,
        op: MatmulOp | PackedMatmulOp,
        product: Product,
        shape: RegisterTile,
        lanes: int,
        blocks: Dim | None,
        word: int = 1,
    ) -> None:
        k.keeps_names = True
        self.k, self.op, self.product, self.shape, self.lanes, self.word = k, op, product, shape, lanes, word
        self.starts: SSAValue | None = None
        self.offset = 0
        self.halves = False
        self.width = shape.width(lanes)
        self.panels = ceil_div(product.columns, self.width)
        self.row_tiles = ceil_div(product.rows, shape.rows)
        self.blocks = self.row_tiles if blocks is None else blocks
        self.exact = isinstance(product.columns, int) and product.columns % self.width == 0
        self.lhs = k.named(k.buffer(product.lhs.value, product.lhs.offset), "a", keep=True)
        self._steps: dict[Walk, list[Index]] = {}

    def make_signed(self, starts: SSAValue) -> None:
        """Have numbers made signed, and sums start with what that takes off, a line for each panel."""
        self.starts, self.offset = starts, SIGNED

    def multiply_halves(self) -> None:
        """Have numbers of the left operand rounded to half precision, in which panels are."""
        self.halves = True

    def write(self, panels: Panels, packs: bool) -> None:
        """The whole kernel. Where a worker `packs` the panels it has memory of its own."""
        build(self.k, self._tasks, panels, packs)

    @kernel
    def _tasks(self, panels: Panels, packs: bool) -> None:
        pairs = self.panels
        for extent in self.product.batches:
            pairs = pairs * extent
        tasks = size("tasks", pairs * self.blocks)
        first, last = share(tasks)
        own = slot(tasks, size("slots", slots_for(pairs * self.blocks))) if packs else first
        if not packs or first < last:  # a worker without tasks has no memory to pack into
            blocks = size("blocks", self.blocks)
            for pair in range(first // blocks, ceil_div(last, blocks)):
                batches, panel = self._split(pair)
                column = panel * self.width
                place = Place(batches, 0, column)
                vectors = panels(self, panel, own, place)
                before = pair * blocks
                if self.blocks == self.row_tiles:
                    low, high = max(first - before, 0), min(last - before, blocks)
                else:
                    tiles = size("tiles_per_block", ceil_div(self.row_tiles, self.blocks))
                    low = max(first - before, 0) * tiles
                    high = min(min(last - before, blocks) * tiles, size("row_tiles", self.row_tiles))
                self._rows(low, high, vectors, place)

    @kernel
    def _split(self, pair: Index) -> tuple[list[Index], Index]:
        """The indices along the batches, and the panel, of a pair."""
        if not self.product.batches:
            return [], pair
        panel = pair % size("panel_count", self.panels)
        batch = pair // size("panel_count", self.panels)
        indices: list[Index] = []
        for extent in reversed(self.product.batches[1:]):
            length = value_of(self.k.size(extent))
            indices = [batch % length, *indices]
            batch = batch // length
        return [batch, *indices], panel

    @kernel
    def _rows(self, low: Index, high: Value, vectors: Vectors, place: Place) -> None:
        """Row tiles low, .., high - 1: whole ones, then smaller ones for the rows that are left."""
        rows, height = self.product.rows, self.shape.rows
        full = size("whole_tiles", rows // height)
        for tile in range(low, high if rows % height == 0 else min(high, full)):
            row = tile * height
            self.tile(height, vectors, replace(place, row=row))
        heights = self.tails()
        if heights and high > full:
            row = full * height
            if len(heights) == 1 and isinstance(rows, int):
                self.tile(heights[0], vectors, replace(place, row=row))
            else:
                for height in heights:
                    end = row + (size("rows", rows) - row) // height * height
                    for row in range(row, end, height):
                        self.tile(height, vectors, replace(place, row=row))
                    row = end

    def tails(self) -> tuple[int, ...]:
        """Heights of the tiles for the rows that whole tiles leave."""
        return tail_rows(self.product.rows, self.shape)

    # One tile.

    @kernel
    def tile(self, height: int, vectors: Vectors, place: Place) -> None:
        """Some rows of a panel: `accumulators[i, :] += a[i, k] * w[k, :]` for all k, and the epilogue."""
        *batches, row_step, _, step = self.steps(self.product.lhs)
        a_at = self.address([*place.batches, place.row], [*batches, row_step])
        zero = constant(0.0, f32) if self.word == 1 else constant(0, i32)
        if self.starts is None:
            accumulators = fill(zero, height, self.shape.vectors, self.lanes)
        else:
            words = size("words", ceil_div(self.product.depth, self.word))
            first = vectors.at // (words * self.word)
            accumulators = load(self.starts, first, 0, (height, self.shape.vectors, self.lanes))
        if self.word > 1:
            accumulators = self._sum_of_packed_int8(accumulators, a_at, row_step, vectors)
        else:
            # Several steps at once need their vectors side by side.
            are_beside = isinstance(vectors.step, int) and vectors.step == self.width
            unrolled, depth = _UNROLLED if are_beside else 1, self.product.depth
            whole = size("whole_depth", depth // unrolled * unrolled)
            for k in range(0, whole, unrolled):
                accumulators = self._multiply_add(accumulators, a_at + k * step, (row_step, step), vectors, k, unrolled)
            if depth % unrolled != 0:
                for k in range(whole, size("depth", depth)):
                    accumulators = self._multiply_add(accumulators, a_at + k * step, (row_step, step), vectors, k, 1)
        if height == self.shape.rows or self.exact:
            self.either_edge(place.column, lambda valid: self.finish(accumulators, valid, place))
        else:
            valid = size("columns", self.product.columns) - place.column
            self.finish(accumulators, valid, place)

    @kernel
    def _multiply_add(
        self, accumulators: Value, at: Value, steps: tuple[Index, Index], vectors: Vectors, k: Index, count: int
    ) -> Value:
        return multiply_add(
            accumulators, self.lhs, at, steps, vectors.buffer, vectors.at + k * vectors.step, count, halves=self.halves
        )

    @kernel
    def _sum_of_packed_int8(self, accumulators: Value, a_at: Value, row_step: Index, vectors: Vectors) -> Value:
        """Several bytes of a row at a time; those of the last word that are beyond the row are not read."""
        word, depth = self.word, self.product.depth
        assert isinstance(depth, int)

        def add(accumulators: Value, k: Index, count: int, last: int = FOUR) -> Value:
            at, w_at = a_at + k * word, vectors.at + k * vectors.step
            left, right = (self.lhs, at, row_step), (vectors.buffer, w_at)
            return multiply_add_int8(accumulators, *left, *right, count, last=last, offset=self.offset)

        words, rest = depth // word, depth % word
        many, whole = size("many_words", words // _UNROLLED * _UNROLLED), size("whole_words", words)
        for k in range(0, many, _UNROLLED):
            accumulators = add(accumulators, k, _UNROLLED)
        if words % _UNROLLED:
            for k in range(many, whole):
                accumulators = add(accumulators, k, 1)
        return add(accumulators, whole, 1, rest) if rest else accumulators

    @kernel
    def either_edge(self, column: Index, then: Callable[[Value | None], None]) -> None:
        """`then(None)` where a whole panel of columns is left from `column` on, else `then(number of columns)`."""
        if self.exact:
            then(None)
        else:
            valid = size("columns", self.product.columns) - column
            if valid >= self.width:
                then(None)
            else:
                then(valid)

    @kernel
    def finish(self, tile: Value, valid: Value | None, place: Place) -> None:
        """The epilogue on every vector of the tile, and its store."""
        for element, i, vector, lane in elements(tile, None, valid):
            row, column = place.row + i, place.column + vector * self.lanes
            position = [*place.batches, row, column, lane]
            extras = [self._memory(walk)[position] for walk in self.product.extras]
            *outer, columns = self.product.axes
            loops = {axis: at for group, at in zip(outer, [*place.batches, row], strict=False) for axis in group}

            def index(axis: int) -> Index:
                return loops[axis] if axis in loops else column + lane

            result = finished(self.op.epilogue, element, extras, columns[0] + 1, index)
            self._memory(self.product.out)[position] = result

    def _memory(self, walk: Walk) -> Strided:
        """An operand, by indices along batches, rows, the tile's first column, and the lane."""
        memory = self.k.buffer(walk.value, walk.offset)
        *steps, column, _ = self.steps(walk)
        return strided(memory, *steps, column, column)

    def steps(self, walk: Walk) -> list[Index]:
        """The strides along batches, rows, columns and the sum, as arguments where they are not part of the code."""
        if walk not in self._steps:
            strides = [self.k.stride(step) for step in (*walk.batches, walk.row, walk.column, walk.depth)]
            self._steps[walk] = [step if isinstance(step, int) else value_of(step) for step in strides]
        return self._steps[walk]

    @kernel
    def address(self, indices: Sequence[Index], steps: Sequence[Index]) -> Value:
        """The sum of index times stride."""
        return place(sum([index * step for index, step in zip(indices, steps, strict=True)]))
