"""Warp-specialised kernels, persistent or with one tile a block: a producer thread copies, warpgroups multiply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.kernel.cluster import (
    ClusterRankOp,
    LaunchDependentsOp,
    WaitDependencyOp,
)
from mlirt.dialects.kernel.core import YieldOp
from mlirt.dialects.kernel.simt import BarrierOp, BlockIdOp, GridSizeOp, ThreadIdOp
from mlirt.dialects.kernel.warpgroup import WARPGROUP, SetRegistersOp, WarpValueOp
from mlirt.dialects.kernel.warpgroup_turns import EachWarpgroupOp
from mlirt.dialects.symbolic import Dim, ceil_div, minimum
from mlirt.dialects.target import HOPPER
from mlirt.passes.lowering.kernel_builder import KernelBuilder
from mlirt.passes.lowering.warpgroups.cluster_accumulators import ClusterAccumulators
from mlirt.passes.lowering.warpgroups.group_sizes import GroupSizes, Work
from mlirt.passes.lowering.warpgroups.group_tile import GroupTile
from mlirt.passes.lowering.warpgroups.kinds import Kind
from mlirt.passes.lowering.warpgroups.pipeline import Pipeline, PipelineState
from mlirt.passes.lowering.warpgroups.row_epilogue import RowEpilogue
from mlirt.passes.lowering.warpgroups.sources import Source
from mlirt.passes.lowering.warpgroups.tile_results import Results, TileResults

_INDEX_LIMIT = 2**31
_LONG = 64  # steps of a tile
_TILES = ("number", "stage", "parity")  # what goes round a loop over the tiles of a block
_GROUP = 8  # rows of tiles that are worked on together, so that they share columns in the cache
# For each thread, by the warpgroups that multiply: of the one that starts copies, and of these.
_REGISTERS = {1: (40, 232), 2: (40, 232), 3: (32, 160), 4: (24, 120)}


@dataclass(frozen=True)
class TileScheduler:
    """The tiles of a persistent block: the one of its number, and every `blocks` further on."""

    block: SSAValue
    blocks: SSAValue

    def number(self, k: KernelBuilder, i: SSAValue) -> SSAValue:
        return k.named(k.add(self.block, k.mul(i, self.blocks)), "tile")


class GroupProduct:
    """One kernel under construction."""

    def __init__(
        self,
        k: KernelBuilder,
        tile: GroupTile,
        sizes: GroupSizes,
        kind: Kind,
        sources: tuple[Source, Source],
        epilogue: RowEpilogue,
    ) -> None:
        self.k, self.tile, self.sizes = k, tile, sizes
        self.left, self.right = sources
        self.results = TileResults(k, tile, sizes, epilogue, in_fragment_order=self.right.in_fragment_order)
        self.thread = k.value(ThreadIdOp())
        self.thread.name_hint = "thread"
        self.pipe = Pipeline(k, tile, kind, self.left, self.right)
        self.tile_rows, self.tile_columns = ceil_div(sizes.rows, tile.rows), ceil_div(sizes.columns, tile.columns)
        self.entries: Dim = 1
        for length in sizes.batch:
            self.entries = self.entries * length

    @property
    def tiles(self) -> Dim:
        return self.tile_rows * self.tile_columns * self.entries

    def build(self, layer: Operation) -> None:
        """Write the kernel and launch it before `layer`."""
        k = self.k
        self.pipe.initialise(self.thread, self.results.initialise)
        k.insert(BarrierOp())
        if self.tile.stays:
            self._stay()
            resident = 1 + self.tile.double
            blocks: Dim = minimum(self.tiles, k.lowering.target.gpu.processors * resident)
            if self.tile.double:
                k.function.attributes["resident"] = IntegerAttr(resident, i64)
        else:
            self._single()
            blocks = self.tiles * self.tile.split
        k.function.attributes["architecture"] = StringAttr(HOPPER)
        if fits_narrow(k, layer, self.tiles * self.tile.rows * self.tile.columns):
            k.function.attributes["index_bits"] = IntegerAttr(32, i64)
        k.finish(layer, grid=(blocks, 1, 1), block=[self.tile.threads])

    def _role(self, threads: int) -> SSAValue:
        """The number of this thread's warp or warpgroup, which its warp does not diverge on."""
        role = self.k.value(WarpValueOp(self.k.div(self.thread, threads)))
        role.name_hint = "group" if threads == WARPGROUP else "warp"
        return role

    def _split_roles(self, is_producer: SSAValue, produce: Callable[[], None], consume: Callable[[], None]) -> None:
        self.k.either(is_producer, produce, consume)

    def _start_early(self) -> None:
        """Begin while the launch before this one ends, and let the next one do the same."""
        self.k.function.attributes["dependent_launch"] = UnitAttr()
        if not self._is_in_step:
            self.k.insert(LaunchDependentsOp())

    @property
    def _is_in_step(self) -> bool:
        """Whether blocks that read the same tiles should stay in step, so that the cache answers them together.

        Where one long tile each is all they do, the next launch begins when the products are done: measured on an H200,
        convolutions with 72 steps take 14 us that way, else 25 us.
        """
        steps = self.sizes.steps
        alone = not self.tile.stays and self.tile.split == 1
        return alone and isinstance(steps, int) and steps >= _LONG

    # persistent blocks.

    def _stay(self) -> None:
        k, tile = self.k, self.tile
        self._start_early()
        tiles = TileScheduler(k.named(k.value(BlockIdOp(0)), "block"), k.named(k.value(GridSizeOp(0)), "blocks"))
        count = k.named(k.ceil_div(k.sub(k.size(self.tiles), tiles.block), tiles.blocks), "count")
        steps = k.size(self.sizes.steps)
        group = self._role(WARPGROUP)

        def produce() -> None:
            self._set_registers(0)
            leads = k.compare("eq", self.thread, tile.consumers * WARPGROUP)
            k.when(leads, lambda: self._copy(tiles, count, steps))

        def consume() -> None:
            self._set_registers(1)
            k.insert(WaitDependencyOp())
            multiply = self._multiply_ping_pong if tile.ping_pong else self._multiply_together
            multiply(group, tiles, count, steps)

        self._split_roles(k.compare("eq", group, tile.consumers), produce, consume)

    def _copy(self, tiles: TileScheduler, count: SSAValue, steps: SSAValue) -> None:
        """Start the copies of all tiles of a block, one after the other."""
        k = self.k

        def next_one(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            following = k.add(i, 1)
            work = self._work(tiles.number(k, following))
            self._start_sources(work)
            state = self.pipe.fill(k.constant(0), steps, PipelineState(*carried))
            self.results.copy_ahead(following, work)
            return state.values()

        first = self._work(tiles.block)
        state = self._fill_ahead(first, k.constant(0), steps)
        self.results.copy_ahead(k.constant(0), first)
        k.loop(k.sub(count, 1), state.values(), next_one, _TILES)

    def _multiply_together(self, group: SSAValue, tiles: TileScheduler, count: SSAValue, steps: SSAValue) -> None:
        """All warpgroups multiply rows of each tile."""

        def each(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            work = self._work(tiles.number(self.k, i))
            pieces = self.results.begin(self.thread, group, work, i)
            sums, state = self.pipe.multiply(group, self.thread, steps, PipelineState(*carried))
            self.results.write(sums, pieces)
            return state.values()

        self.k.loop(count, self.pipe.start(0).values(), each, _TILES)

    def _multiply_ping_pong(self, group: SSAValue, tiles: TileScheduler, count: SSAValue, steps: SSAValue) -> None:
        """Each warpgroup multiplies whole tiles, while the others write theirs."""
        k, tile = self.k, self.tile

        def every_other(i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            own = k.add(k.mul(i, tile.consumers), group)
            pieces = self.results.begin(self.thread, k.constant(0), self._work(tiles.number(k, own)), own)
            self.results.write(self.pipe.multiply_ping_pong(group, self.thread, steps, i), pieces)
            return []

        each_one = EachWarpgroupOp()
        with k.inside(each_one.body.block):
            k.loop(k.ceil_div(k.max(k.sub(count, group), 0), tile.consumers), [], every_other)
            k.insert(YieldOp(operands=[[]]))
        k.insert(each_one)

    def _set_registers(self, role: int) -> None:
        """Where a block has all registers, those that start copies leave some to those that multiply."""
        if not self.tile.double:
            self.k.insert(SetRegistersOp(_REGISTERS[self.tile.consumers][role], grow=bool(role)))

    def _work(self, number: SSAValue) -> Work:
        """The tile of a number: groups of rows of tiles, in these column by column."""
        k = self.k
        rows, columns = k.size(self.tile_rows), k.size(self.tile_columns)
        if self.entries == 1:
            batch, rest = k.constant(0), number
        else:
            per_entry = k.size(self.tile_rows * self.tile_columns)
            batch, rest = k.div(number, per_entry), k.rem(number, per_entry)
        in_group = k.mul(columns, _GROUP)
        first = k.mul(k.div(rest, in_group), _GROUP)
        height = k.min(k.sub(rows, first), _GROUP)
        rest = k.rem(rest, in_group)
        row, column = k.add(first, k.rem(rest, height)), k.div(rest, height)
        return self._place(row, column, batch)

    def _place(self, row: SSAValue, column: SSAValue, batch: SSAValue) -> Work:
        """Where the tile of a row and a column of tiles starts."""
        k = self.k
        first_row = k.named(k.mul(row, self.tile.rows), "first_row")
        return Work(first_row, k.named(k.mul(column, self.tile.columns), "first_column"), batch)

    def _start_sources(self, work: Work) -> None:
        k, rest = self.k, work.batch
        entry: list[SSAValue] = []
        for number, size in reversed(list(enumerate(self.sizes.batch))):
            extent = k.size(size)
            entry.insert(0, k.rem(rest, extent) if number else rest)
            rest = k.div(rest, extent) if number else rest
        self.left.start_tile(k, work.row, entry)
        self.right.start_tile(k, work.column, entry)

    # Blocks of one tile.

    def _single(self) -> None:
        k, tile = self.k, self.tile
        self._start_early()
        block = k.named(k.value(BlockIdOp(0)), "block")
        work = self._work_of_block(k.div(block, tile.split))
        first, steps = self._range()
        shared = tile.split > 1
        of_cluster = ClusterAccumulators(k, tile, self.pipe.kind.sums, self.results, self.thread) if shared else None
        warp = self._role(32)

        def produce() -> None:
            leads = k.compare("eq", self.thread, WARPGROUP)

            def fill() -> None:
                self._fill_ahead(work, first, steps)

            k.when(leads, fill)

        def consume() -> None:
            k.insert(WaitDependencyOp())
            pieces = self.results.begin(self.thread, k.constant(0), work) if of_cluster is None else Results([])
            sums, _ = self.pipe.multiply(k.constant(0), self.thread, steps, self.pipe.start(0))
            if self._is_in_step:
                k.insert(LaunchDependentsOp())
            if of_cluster is None:
                self.results.write(sums, pieces)
            else:
                of_cluster.keep(sums, self.right.in_fragment_order)

        self._split_roles(k.compare("eq", warp, WARPGROUP // 32), produce, consume)
        if of_cluster is not None:
            of_cluster.write(work)
            k.function.attributes["cluster"] = IntegerAttr(tile.split, i64)

    def _work_of_block(self, number: SSAValue) -> Work:
        """Rows of tiles first: neighbouring blocks share columns, most often weights."""
        k = self.k
        rows = k.size(self.tile_rows)
        row, rest = k.rem(number, rows), k.div(number, rows)
        columns = k.size(self.tile_columns)
        batch, column = (k.constant(0), rest) if self.entries == 1 else (k.div(rest, columns), k.rem(rest, columns))
        return self._place(row, column, batch)

    def _range(self) -> tuple[SSAValue, SSAValue]:
        """The first tile along the depth of this block, and how many there are."""
        k = self.k
        if self.tile.split == 1:
            return k.constant(0), k.size(self.sizes.steps)
        share = k.size(ceil_div(self.sizes.steps, self.tile.split))
        first = k.mul(k.value(ClusterRankOp()), share)
        return first, k.max(k.min(share, k.sub(k.size(self.sizes.steps), first)), 0)

    def _fill_ahead(self, work: Work, first: SSAValue, steps: SSAValue) -> PipelineState:
        """As `Pipeline.fill` of the first tile; what is known is copied before the launch before this one has ended."""
        k, pipe = self.k, self.pipe
        self._start_sources(work)
        operands = (self.left, self.right)
        ahead = k.min(steps, self.tile.stages)

        def load(known: bool) -> Callable[[SSAValue, list[SSAValue]], list[SSAValue]]:
            def one(i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
                if known:
                    pipe.announce(i)
                for operand in operands:
                    if operand.is_constant == known:
                        operand.load(k, k.add(first, i), pipe.slot(i, operand))
                return []

            return one

        k.loop(ahead, [], load(True), ["stage"])
        k.insert(WaitDependencyOp())
        k.loop(ahead, [], load(False), ["stage"])
        is_round = k.compare("eq", ahead, self.tile.stages)
        state = PipelineState(k.select(is_round, 0, ahead), k.select(is_round, 0, 1))
        return pipe.fill(k.add(first, ahead), k.sub(steps, ahead), state)


def fits_narrow(k: KernelBuilder, layer: Operation, work: Dim) -> bool:
    """Whether 32-bit indices are enough: nothing that is touched has 2**31 bytes, nor does the `work`'s last number."""
    places = k.lowering.placements
    sizes = [places.size_of(places[value].buffer) for value in (*layer.operands, *layer.results)]
    return all(isinstance(size, int) and size < _INDEX_LIMIT for size in (*sizes, work))
