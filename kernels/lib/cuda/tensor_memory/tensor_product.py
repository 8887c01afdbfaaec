"""Persistent kernels whose accumulators lie in tensor memory: warps copy, multiply and write at the same time."""

from __future__ import annotations

from mlirt.dialects.kernel.simt import WARP, WARPGROUP
from mlirt.dialects.kernel.tensor_memory import HALF_LANES, LANE
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.tensor_memory.tensor_results import TensorAccumulators, TensorResults
from mlirt.kernels.lib.cuda.tensor_memory.tensor_tile import ACCUMULATORS, TensorTile
from mlirt.kernels.lib.cuda.warpgroups.group_product import GroupProduct
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import GroupSizes, Work
from mlirt.kernels.lib.cuda.warpgroups.kinds import Kind
from mlirt.kernels.lib.cuda.warpgroups.pipeline import Pipeline
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import RowEpilogue
from mlirt.kernels.lib.cuda.warpgroups.sources import Source
from mlirt.kernels.lib.cuda.warpgroups.tile_results import RowPlaces, RowsInOrder
from mlirt.kernels.lib.language import Index, Value, kernel
from mlirt.kernels.lib.language.blackwell_words import (
    tcgen05_commit,
    tcgen05_fence_after,
    tcgen05_fence_before,
    tcgen05_mma,
    tensor_columns,
)
from mlirt.kernels.lib.language.hopper_words import (
    SharedTile,
    fence_mbarriers,
    launch_dependents,
    mbarriers,
    wait_dependency,
    warp_uniform,
)
from mlirt.kernels.lib.language.simt_words import block_id, grid_size, sync_threads, thread_id
from mlirt.kernels.lib.language.words import ceil_div, index_of, place, size

_WARPS = WARPGROUP // WARP
_GROUP_ROWS = _WARPS * HALF_LANES  # of a tile, that a warpgroup writes


class LaneRows:
    """Which row a row of a warpgroup is: a warp has 32 lanes, of which each of two warpgroups writes 16."""

    def __init__(self, rows: RowPlaces) -> None:
        self.rows = rows

    @kernel
    def place(self, work: Work, row: Value) -> tuple[Value, bool | None]:
        group, rest = row // _GROUP_ROWS, row % _GROUP_ROWS
        lane = rest // HALF_LANES * WARP + group * HALF_LANES + rest % HALF_LANES
        return self.rows.place(work, place(lane))


class TensorPipeline(Pipeline):
    """The same stages, which the matrix unit itself gives back when it has read them.

    Behind them come tiles of accumulators: products fill one when it is `free`, and then it is `done`.
    """

    def __init__(self, k: KernelBuilder, tile: TensorTile, kind: Kind, sources: tuple[Source, Source]) -> None:
        super().__init__(k, tile, kind, sources)
        self.done, self.free = mbarriers("done", ACCUMULATORS), mbarriers("free", ACCUMULATORS)
        self.columns, self.writers = tensor_columns(tile.tensor_columns), tile.consumers * _WARPS

    @kernel
    def initialise_accumulators(self) -> None:
        """Make their barriers, in one thread."""
        for buffer in range(ACCUMULATORS):
            self.done[buffer].init(1)
            self.free[buffer].init(self.writers)

    @kernel
    def multiply_into(self, address: Value, steps: Index, stage: Index, parity: Index) -> tuple[Index, Index]:
        """Start the products of a tile, in one thread: the next state."""
        left, right = self.sources
        for step in range(steps):
            self.full[stage].wait(parity)
            tcgen05_fence_after()
            a = SharedTile(self.memory, stage * self.stage, left.by_depth)
            b = SharedTile(self.memory, stage * self.stage + self.right_start, right.by_depth)
            tcgen05_mma(self.kind.mma, address, step > 0, a, b, self.tile.columns, self.kind.line)
            tcgen05_commit(self.empty[stage])
            stage, parity = self.advance(stage, parity)
        return stage, parity


class TensorProduct(GroupProduct):
    """The product of `GroupProduct` for tiles whose accumulators lie in tensor memory."""

    def __init__(
        self,
        k: KernelBuilder,
        tile: TensorTile,
        sizes: GroupSizes,
        kind: Kind,
        sources: tuple[Source, Source],
        epilogue: RowEpilogue,
    ) -> None:
        super().__init__(k, tile, sizes, kind, sources, epilogue)
        order, places = sources[1].in_fragment_order, LaneRows(RowsInOrder(k, tile, sizes))
        self.results = TensorResults(k, tile, sizes, epilogue, in_fragment_order=order, places=places)
        self.tensor_tile = tile

    @kernel
    def _kernel(self) -> None:
        """Make the barriers, allocate tensor memory, and let each warp do its part."""
        thread = thread_id()
        pipe = TensorPipeline(self.k, self.tensor_tile, self.kind, self.sources)
        writers = pipe.writers
        warp = warp_uniform(thread // WARP)
        if thread == 0:
            pipe.initialise()
            pipe.initialise_accumulators()
            fence_mbarriers()
        if warp == writers + 1:
            pipe.columns.allocate()
        tcgen05_fence_before()
        sync_threads()
        tcgen05_fence_after()
        launch_dependents()
        address = index_of(pipe.columns.place[0])
        block, blocks = block_id(), grid_size()
        count = ceil_div(size("tiles", self.tiles) - block, blocks)
        steps = size("steps", self.sizes.steps)
        if warp == writers:
            if thread == writers * WARP:
                self._copy(pipe, block, blocks, count, steps)
        else:
            if warp == writers + 1:
                if thread == (writers + 1) * WARP:
                    self._multiply(pipe, address, count, steps)
            else:
                wait_dependency()
                self._write(pipe, thread, warp, address, block, blocks, count, steps)
        tcgen05_fence_before()
        sync_threads()
        tcgen05_fence_after()
        if warp == writers + 1:
            pipe.columns.free(address)

    @kernel
    def _multiply(self, pipe: TensorPipeline, address: Value, count: Value, steps: Value) -> None:
        """A thread starts the products of all tiles of a block, each when the accumulators before the last are read."""
        stage, parity = 0, 0
        for i in range(count):
            buffer, turn = i % ACCUMULATORS, i // ACCUMULATORS % 2
            pipe.free[buffer].wait(1 - turn)
            tcgen05_fence_after()
            stage, parity = pipe.multiply_into(address + buffer * self.tile.columns, steps, stage, parity)
            tcgen05_commit(pipe.done[buffer])

    @kernel
    def _write(
        self,
        pipe: TensorPipeline,
        thread: Value,
        warp: Value,
        address: Value,
        block: Value,
        blocks: Value,
        count: Value,
        steps: Value,
    ) -> None:
        """Two warpgroups write the results of each tile, 16 lanes of each warp at once."""
        columns, element = self.tile.columns, self.kind.accumulator_type
        group = warp // _WARPS
        lanes = address + (warp % _WARPS * WARP + group * HALF_LANES) * LANE
        for i in range(count):
            work = self._work(block + i * blocks)
            pieces = self.results.begin(thread, group, work)
            buffer, turn = i % ACCUMULATORS, i // ACCUMULATORS % 2
            pipe.done[buffer].wait(turn)
            tcgen05_fence_after()
            has_terms = isinstance(self.sizes.steps, int) or steps > 0
            start = lanes + buffer * columns
            self.results.write(TensorAccumulators(start, element, pipe.free[buffer], thread, has_terms), pieces)
