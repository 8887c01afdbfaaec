"""Warp-specialised kernels, persistent or with one tile a block: a producer thread copies, warpgroups multiply."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Operation

from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.kernel.warpgroup import WARPGROUP
from mlirt.dialects.symbolic import Dim, minimum, product
from mlirt.dialects.symbolic import ceil_div as dim_ceil_div
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.warpgroups.cluster_accumulators import ClusterAccumulators
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import GroupSizes, Work
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.kinds import Kind
from mlirt.kernels.lib.cuda.warpgroups.pipeline import Pipeline, leads_warpgroup
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import RowEpilogue
from mlirt.kernels.lib.cuda.warpgroups.sources import Source
from mlirt.kernels.lib.cuda.warpgroups.tile_results import Results, RowPlaces, TileResults
from mlirt.kernels.lib.language import Index, Value, build, kernel
from mlirt.kernels.lib.language.hopper_words import (
    Barriers,
    cluster_rank,
    each_warpgroup,
    fence_mbarriers,
    launch_dependents,
    mbarriers,
    wait_dependency,
    warp_uniform,
)
from mlirt.kernels.lib.language.simt_words import block_id, grid_size, sync_threads, thread_id
from mlirt.kernels.lib.language.words import ceil_div, place, size

_LONG_STEPS = 64  # steps of a tile
_GROUP = 8  # rows of tiles that are worked on together, so that they share columns in the cache


class GroupProduct:
    """One kernel: `results[row, column] = epilogue(sum of left[row, :] * right[column, :])` for a batch of products."""

    def __init__(
        self,
        k: KernelBuilder,
        tile: GroupTile,
        sizes: GroupSizes,
        kind: Kind,
        sources: tuple[Source, Source],
        epilogue: RowEpilogue,
        places: RowPlaces | None = None,
    ) -> None:
        """`places`: which rows of the result the rows of a tile are, where they do not simply follow each other."""
        self.k, self.tile, self.sizes, self.kind, self.sources = k, tile, sizes, kind, sources
        in_order = sources[1].in_fragment_order
        self.results = TileResults(k, tile, sizes, epilogue, in_fragment_order=in_order, places=places)
        self.tile_rows = dim_ceil_div(sizes.rows, tile.rows)
        self.tile_columns = dim_ceil_div(sizes.columns, tile.columns)
        self.entries = product(sizes.batch)
        self.tiles = self.tile_rows * self.tile_columns * self.entries

    def build(self, layer: Operation) -> None:
        """Write the kernel and launch it before `layer`."""
        k, tile = self.k, self.tile
        build(k, self._kernel)
        blocks = self.tiles * tile.split
        if tile.stays:
            resident = 1 + tile.double
            blocks = minimum(self.tiles, k.lowering.target.gpu.processors * resident)
            if tile.double:
                k.function.attributes["resident"] = IntegerAttr(resident, i64)
        if tile.split > 1:
            k.function.attributes["cluster"] = IntegerAttr(tile.split, i64)
        k.function.attributes["dependent_launch"] = UnitAttr()
        k.function.attributes["architecture"] = StringAttr(k.lowering.target.arch)
        if fits_narrow(k, layer, self.tiles * tile.rows * tile.columns):
            k.function.attributes["index_bits"] = IntegerAttr(32, i64)
        k.finish(layer, grid=(blocks, 1, 1), block=[tile.threads])

    @property
    def _is_in_step(self) -> bool:
        """Whether blocks that read the same tiles should stay in step, so that the cache answers them together.

        Where one long tile each is all they do, the next launch begins when the products are done: measured on an H200,
        convolutions with 72 steps take 14 us that way, else 25 us.
        """
        steps = self.sizes.steps
        alone = not self.tile.stays and self.tile.split == 1
        return alone and isinstance(steps, int) and steps >= _LONG_STEPS

    @kernel
    def _kernel(self) -> None:
        """Make the barriers, and begin while the launch before this one ends."""
        tile, thread = self.tile, thread_id()
        pipe = Pipeline(self.k, tile, self.kind, self.sources)
        order = mbarriers("order", tile.consumers) if tile.ping_pong else None
        if thread == 0:
            pipe.initialise()
            if order is not None:
                for consumer in range(tile.consumers):
                    order[consumer].init(1)
            self.results.initialise()
            fence_mbarriers()
        sync_threads()
        if not self._is_in_step:
            launch_dependents()
        if tile.stays:
            self._persistent(pipe, order, thread)
        else:
            self._single(pipe, thread)

    # Persistent blocks: each has the tile of its number, and every `blocks` further on.

    @kernel
    def _persistent(self, pipe: Pipeline, order: Barriers | None, thread: Value) -> None:
        """A thread starts the copies of all tiles of a block, one after the other; the warpgroups multiply them."""
        tile = self.tile
        block, blocks = block_id(), grid_size()
        count = ceil_div(size("tiles", self.tiles) - block, blocks)
        steps = size("steps", self.sizes.steps)
        group = warp_uniform(thread // WARPGROUP)
        if group == tile.consumers:
            if thread == tile.consumers * WARPGROUP:
                self._copy(pipe, block, blocks, count, steps)
        else:
            wait_dependency()
            if order is not None:
                self._multiply_ping_pong(pipe, order, thread, group, block, blocks, count, steps)
            else:
                self._multiply_together(pipe, thread, group, block, blocks, count, steps)

    @kernel
    def _copy(self, pipe: Pipeline, block: Value, blocks: Value, count: Value, steps: Value) -> None:
        """A thread starts the copies of all tiles of a block."""
        work = self._work(block)
        stage, parity = self._fill_ahead(pipe, work, 0, steps)
        self.results.copy_ahead(place(0), work)
        for i in range(count - 1):
            following = i + 1
            work = self._work(block + following * blocks)
            self._start_sources(work)
            stage, parity = pipe.fill(0, steps, stage, parity)
            self.results.copy_ahead(following, work)

    @kernel
    def _multiply_together(
        self, pipe: Pipeline, thread: Value, group: Value, block: Value, blocks: Value, count: Value, steps: Value
    ) -> None:
        """All warpgroups multiply rows of each tile."""
        stage, parity = 0, 0
        for i in range(count):
            work = self._work(block + i * blocks)
            pieces = self.results.begin(thread, group, work, i)
            leads = leads_warpgroup(thread)
            total, last, stage, parity = pipe.multiply(group, leads, steps, stage, parity)
            self.results.write(pipe.finish(total, leads, last), pieces)

    @kernel
    def _multiply_ping_pong(
        self,
        pipe: Pipeline,
        order: Barriers,
        thread: Value,
        group: Value,
        block: Value,
        blocks: Value,
        count: Value,
        steps: Value,
    ) -> None:
        """Each warpgroup multiplies whole tiles, while the others write theirs.

        A warpgroup begins when the one before has seen all stages of the tile before: barriers tell phases apart by
        parity, so that nobody may wait for the phase after the next one.
        """
        groups, stages = self.tile.consumers, self.tile.stages
        with each_warpgroup():
            for i in range(ceil_div(max(count - group, 0), groups)):
                own = i * groups + group
                pieces = self.results.begin(thread, place(0), self._work(block + own * blocks), own)
                stage, parity = own * steps % stages, own * steps // stages % 2
                order[group].wait((i + 1 + min(group, 1)) % 2)
                leads = leads_warpgroup(thread)
                total, last, *_ = pipe.multiply(0, leads, steps, stage, parity)
                if leads_warpgroup(thread):
                    order[(group + 1) % groups].arrive()
                self.results.write(pipe.finish(total, leads, last), pieces)

    @kernel
    def _work(self, tile: Value) -> Work:
        """Tile scheduler: the tile of a number, groups of rows of tiles, in these column by column.

        Rows of a known number that groups divide, or that are one group, need no division by the height of a group.
        """
        rows, columns = size("tile_rows", self.tile_rows), size("tile_columns", self.tile_columns)
        batch, rest = place(0), tile
        across = columns
        if self.sizes.shares_rows:
            across = columns * size("entries", self.entries)
        elif self.entries != 1:
            per_entry = size("tiles_of_entry", self.tile_rows * self.tile_columns)
            batch, rest = tile // per_entry, tile % per_entry
        in_group = across * _GROUP
        if isinstance(self.tile_rows, int) and self.tile_rows <= _GROUP:
            row, column = rest % self.tile_rows, rest // self.tile_rows
        elif isinstance(self.tile_rows, int) and self.tile_rows % _GROUP == 0:
            row, column = rest // in_group * _GROUP + rest % _GROUP, rest % in_group // _GROUP
        else:
            first = rest // in_group * _GROUP
            height = min(rows - first, _GROUP)
            rest = rest % in_group
            row, column = first + rest % height, rest // height
        if self.sizes.shares_rows:
            batch, column = column // columns, column % columns
        return self._place(row, column, batch)

    @kernel
    def _place(self, row: Value, column: Value, batch: Value) -> Work:
        """Where the tile of a row and a column of tiles starts."""
        first_row = row * self.tile.rows
        first_column = column * self.tile.columns
        return Work(place(first_row), place(first_column), batch)

    @kernel
    def _start_sources(self, work: Work) -> None:
        """Tell the operands which tile is copied next."""
        entry: list[Value] = []
        rest = work.batch
        for number, length in reversed(list(enumerate(self.sizes.batch))):
            extent = size(f"batch_{number}", length)
            entry = [rest % extent if number else rest, *entry]
            rest = rest // extent if number else rest
        for operand, first in zip(self.sources, (work.row, work.column), strict=True):
            operand.start_tile(first, entry)

    # Blocks of one tile, or of a part of its depth.

    @kernel
    def _single(self, pipe: Pipeline, thread: Value) -> None:
        """A thread starts the copies of the tile, a warpgroup multiplies it."""
        split = self.tile.split
        work = self._work_of_block(block_id() // split)
        first, steps = self._range()
        cluster = (
            ClusterAccumulators(self.tile, self.kind.accumulator_type, self.results, thread) if split > 1 else None
        )
        warp = warp_uniform(thread // WARP)
        if warp == WARPGROUP // WARP:
            if thread == WARPGROUP:
                self._fill_ahead(pipe, work, first, steps)
        else:
            wait_dependency()
            pieces = self.results.begin(thread, place(0), work) if cluster is None else Results([])
            leads = leads_warpgroup(thread)
            total, last, *_ = pipe.multiply(0, leads, steps, 0, 0)
            total = pipe.finish(total, leads, last)
            if self._is_in_step:
                launch_dependents()
            if cluster is None:
                self.results.write(total, pieces)
            else:
                cluster.keep(total, self.sources[1].in_fragment_order)
        if cluster is not None:
            cluster.write(work)

    @kernel
    def _work_of_block(self, tile: Value) -> Work:
        """Rows of tiles first: neighbouring blocks share columns, most often weights."""
        rows = size("tile_rows", self.tile_rows)
        row, rest = tile % rows, tile // rows
        columns = size("tile_columns", self.tile_columns)
        batch, column = place(0), rest
        if self.entries != 1:
            batch, column = rest // columns, rest % columns
        return self._place(row, column, batch)

    @kernel
    def _range(self) -> tuple[Index, Index]:
        """The first tile along the depth of this block, and how many there are."""
        if self.tile.split == 1:
            return 0, size("steps", self.sizes.steps)
        share = size("share", dim_ceil_div(self.sizes.steps, self.tile.split))
        first = cluster_rank() * share
        return first, max(min(share, size("steps", self.sizes.steps) - first), 0)

    @kernel
    def _fill_ahead(self, pipe: Pipeline, work: Work, first: Index, steps: Index) -> tuple[Index, Index]:
        """As `Pipeline.fill` of the first tile; what is known is copied before the launch before this one has ended."""
        self._start_sources(work)
        ahead = min(steps, self.tile.stages)
        for known in (True, False):
            if not known:
                wait_dependency()
            for stage in range(ahead):
                if known:
                    pipe.full[stage].expect(pipe.stage_bytes)
                for operand in self.sources:
                    if operand.is_constant == known:
                        operand.load(first + stage, pipe.slot(stage, operand))
        is_round = ahead == self.tile.stages
        stage, parity = 0 if is_round else ahead, 0 if is_round else 1
        return pipe.fill(first + ahead, steps - ahead, stage, parity)


def fits_narrow(k: KernelBuilder, layer: Operation, work: Dim) -> bool:
    """Whether 32-bit indices are enough: nothing that is touched has 2**31 bytes, nor does the `work`'s last number."""
    return k.lowering.fits_int32((*layer.operands, *layer.results), work)
