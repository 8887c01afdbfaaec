"""Convolutions whose warpgroups find the pixels of all positions of a window in TMA boxes that were copied once.

The weights of a block's columns stay in shared memory. Each warpgroup has stages of its own, a thread that fills
them, and every so many tiles of the block; a slab is a line of channels of the boxes of a tile.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.kernel.simt import MAX_ALIGNMENT, WARP
from mlirt.dialects.kernel.warpgroup import ROWS, WARPGROUP
from mlirt.dialects.symbolic import Dim, minimum
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.warpgroups.box_rows import BoxRows
from mlirt.kernels.lib.cuda.warpgroups.box_tile import BoxTile
from mlirt.kernels.lib.cuda.warpgroups.group_product import fits_narrow
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import GroupSizes, Work
from mlirt.kernels.lib.cuda.warpgroups.kinds import Kind
from mlirt.kernels.lib.cuda.warpgroups.pipeline import leads_warpgroup
from mlirt.kernels.lib.cuda.warpgroups.pixel_boxes import PixelBox
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import RowEpilogue
from mlirt.kernels.lib.cuda.warpgroups.sources import MatrixSource, Slot
from mlirt.kernels.lib.cuda.warpgroups.tile_results import TileResults
from mlirt.kernels.lib.language import Index, Value, build, kernel
from mlirt.kernels.lib.language.hopper_words import (
    SharedTile,
    each_warpgroup,
    fence_mbarriers,
    launch_dependents,
    mbarriers,
    tma_load,
    wait_dependency,
    warp_uniform,
    wgmma,
    wgmma_result,
)
from mlirt.kernels.lib.language.simt_words import block_id, shared_memory, sync_threads, thread_id, zeros
from mlirt.kernels.lib.language.words import ceil_div, place, size, static_range

_FEW_TAPS = 16  # that are not a loop, so that their places are numbers in the code


class BoxProduct:
    """One kernel. `maps` are those of the input, one for each box."""

    def __init__(
        self,
        k: KernelBuilder,
        tile: BoxTile,
        rows: BoxRows,
        columns: int,
        slabs: int,
        kind: Kind,
        operands: tuple[list[SSAValue], MatrixSource],
        epilogue: RowEpilogue,
    ) -> None:
        self.k, self.tile, self.rows, self.slabs, self.kind = k, tile, rows, slabs, kind
        self.boxes = rows.boxes
        self.maps, self.weights = operands
        self.across = -(-columns // tile.columns)
        self.blocks: Dim = minimum(rows.tiles, max(1, k.lowering.target.gpu.processors // self.across))
        sizes = GroupSizes(rows.pixels, columns, (), slabs)
        self.results = TileResults(
            k, tile.own_tile, sizes, epilogue, in_fragment_order=self.weights.in_fragment_order, places=rows
        )
        self.steps = slabs * len(self.boxes.taps)
        self.line = kind.line // byte_width(kind.element)
        self.slab, self.step = self.boxes.lines * self.line, tile.columns * self.line

    def build(self, layer: Operation) -> None:
        """Write the kernel and launch it before `layer`."""
        k = self.k
        build(k, self._kernel)
        k.function.attributes["dependent_launch"] = UnitAttr()
        k.function.attributes["architecture"] = StringAttr(k.lowering.target.arch)
        if fits_narrow(k, layer, self.rows.tiles * self.boxes.lines * self.line * self.across):
            k.function.attributes["index_bits"] = IntegerAttr(32, i64)
        k.finish(layer, grid=(self.blocks * self.across, 1, 1), block=[self.tile.threads])

    @kernel
    def _kernel(self) -> None:
        """Threads of one warpgroup start copies, one for each of the others: one alone would be too slow for them."""
        tile, results, thread = self.tile, self.results, thread_id()
        groups, stages = tile.groups, tile.groups * tile.stages
        boxes = shared_memory("boxes", stages * self.slab, self.kind.element, MAX_ALIGNMENT)
        weights = shared_memory("weights", self.steps * self.step, self.kind.element, MAX_ALIGNMENT)
        full, empty, ready = mbarriers("full", stages), mbarriers("empty", stages), mbarriers("ready", 1)
        order = mbarriers("order", groups) if tile.ping_pong else None
        if thread == 0:
            for stage in range(stages):
                full[stage].init(1)
                empty[stage].init(1)
            ready[0].init(1)
            if order is not None:
                for barrier in order.all():
                    barrier.init(1)
            results.initialise()
            fence_mbarriers()
        sync_threads()
        launch_dependents()

        block, blocks, alone = block_id(), size("blocks", self.blocks), self.across == 1
        column = place(0) if alone else block // blocks * tile.columns
        first = block if alone else block % blocks
        count = ceil_div(size("tiles", self.rows.tiles) - first, blocks)

        def turn_of(group: Value, own: Index) -> Value:
            """The number of a warpgroup's own tile among all of a block."""
            iteration = own * groups + group
            return iteration

        def tile_of(iteration: Value) -> Value:
            number = first + iteration * blocks
            return number

        def stage_of(group: Value, own: Index, slab: Index) -> tuple[Value, Index]:
            """The stage of a warpgroup's own tile's slabs, and the parity of that phase."""
            used = own * self.slabs + slab
            stage = group * tile.stages + used % tile.stages
            parity = used // tile.stages % 2
            return stage, parity

        group = warp_uniform(thread // WARPGROUP)
        if group >= groups:
            producer = thread - groups * WARPGROUP
            served = warp_uniform(producer // WARP)
            with each_warpgroup(threads=WARP):
                if producer % WARP == 0:
                    if served == 0:
                        ready[0].expect(self.steps * tile.columns * self.kind.line)
                        self.weights.start_tile(column, [])
                        for step in range(self.steps):
                            self.weights.load(step, Slot(SharedTile(weights, step * self.step), ready[0]))
                    wait_dependency()
                    for own in range(ceil_div(max(count - served, 0), groups)):
                        iteration = turn_of(served, own)
                        number = tile_of(iteration)
                        image, *corner = self.rows.corner(number)
                        for slab in range(self.slabs):
                            stage, parity = stage_of(served, own, slab)
                            empty[stage].wait(1 - parity)
                            full[stage].expect(self.boxes.copied * self.kind.line)
                            start = stage * self.slab
                            for box, tensor_map in zip(self.boxes.boxes, self.maps, strict=True):
                                y, x = corner[0] + box.down.first, corner[1] + box.across.first
                                target = SharedTile(boxes, start + box.start * self.line)
                                tma_load(tensor_map, [image, y, x, slab * self.line], target, full[stage])
                        results.copy_ahead(iteration, Work(number * ROWS, column, place(0)))
        else:
            wait_dependency()
            results.prepare(thread, column)
            ready[0].wait(0)
            with each_warpgroup():
                for own in range(ceil_div(max(count - group, 0), groups)):
                    iteration = turn_of(group, own)
                    work = Work(tile_of(iteration), column, place(0))
                    pieces = results.begin(thread, place(0), work, iteration)
                    leads = leads_warpgroup(thread)
                    total = zeros(self.kind.accumulator_type, tile.columns // 2)
                    if order is not None:
                        # The one before has begun all its products: it writes results while this one multiplies.
                        # Barriers tell phases apart by parity: nobody may wait for the phase after the next one.
                        order[group].wait((own + 1 + min(group, 1)) % 2)
                    for slab in range(self.slabs):
                        stage, parity = stage_of(group, own, slab)
                        full[stage].wait(parity)
                        start, tap = stage * self.slab, slab * len(self.boxes.taps)
                        for box in self.boxes.boxes:
                            total = self._add_box(total, box, SharedTile(boxes, start), weights, tap)
                            tap = tap + len(list(box.taps))
                        if order is not None:
                            ends = leads and slab == self.slabs - 1 if self.slabs > 1 else leads
                            following = (group + 1) % groups
                            if ends:
                                order[following].arrive()
                        total = wgmma_result(total)
                        if leads:
                            empty[stage].arrive()
                    results.write(total, pieces)

    @kernel
    def _add_box(self, total: Value, box: PixelBox, boxes: SharedTile, weights: Value, first: Index) -> Value:
        """The accumulators with what the positions of the window find in a box; their weights begin at step `first`."""
        across, taps = len(box.across.taps), len(list(box.taps))

        def add(total: Value, tap: Index) -> Value:
            kept = first + tap
            down, along = tap // across * (box.down.step * self.boxes.pitch), tap % across
            line = down + along * box.across.step + box.start
            a = SharedTile(boxes.memory, boxes.index + line * self.line)
            b = SharedTile(weights, kept * self.step)
            return wgmma(self.kind.mma, total, a, b, self.tile.columns, self.kind.line, self.boxes.step)

        if len(self.boxes.taps) <= _FEW_TAPS:
            for tap in static_range(taps):
                total = add(total, tap)
        else:
            for tap in range(taps):
                total = add(total, tap)
        return total
