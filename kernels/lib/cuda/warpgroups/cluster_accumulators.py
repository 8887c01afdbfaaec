"""Split-K over a cluster: each block keeps its own accumulators, then adds up some rows of all and writes them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from mlirt.dialects.kernel.warpgroup import WARPGROUP
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import Work
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import QUAD
from mlirt.kernels.lib.cuda.warpgroups.tile_results import TileResults
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.hopper_words import cluster_rank, remote_shared, sync_cluster
from mlirt.kernels.lib.language.simt_words import (
    Access,
    elementwise,
    load_fragment,
    shared_memory,
    store_fragment,
)
from mlirt.kernels.lib.language.words import static_range


class ClusterAccumulators:
    """The accumulators of a block's tile in shared memory, where the other blocks of its cluster read them."""

    def __init__(self, tile: GroupTile, element: Attribute, results: TileResults, thread: Value) -> None:
        self.tile, self.element, self.results, self.thread = tile, element, results, thread
        self.memory = shared_memory("accumulators", tile.rows * tile.pitch, element)

    @kernel
    def keep(self, accumulators: Value, in_fragment_order: bool) -> None:
        """Write this block's sums to shared memory."""
        thread, pitch, width = self.thread, self.tile.pitch, self.results.width
        lane, warp = thread % 32, thread // 32
        own, step = (width, 2) if in_fragment_order else (2, 8)
        row, column = warp * 16 + lane // 4, lane % 4 * own
        in_group = width // 2
        blocks = static_range(self.tile.columns // 8)
        places = [QUAD * width * (j // in_group) + step * (j % in_group) for j in blocks]
        offsets = [8 * h * pitch + place + e for place in places for h in (0, 1) for e in (0, 1)]
        store_fragment(accumulators, self.memory, row * pitch + column, Access(offsets, wide=True))

    @kernel
    def write(self, work: Work) -> None:
        """Add up what the blocks have kept, each some rows, and write the results."""
        tile, width = self.tile, self.results.width
        sync_cluster()
        if self.thread < WARPGROUP:
            across, rows = tile.columns // width, tile.rows // tile.split
            others = [remote_shared(self.memory, rank) for rank in static_range(tile.split)]
            start = cluster_rank() * rows
            places = rows * across
            for number in static_range(-(-places // WARPGROUP)):
                place = self.thread + number * WARPGROUP
                row, column = start + place // across, place % across * width
                if (number + 1) * WARPGROUP <= places or place < places:
                    self._add_row(others, work, row, column)
        sync_cluster()  # no block may end while another one reads its accumulators

    @kernel
    def _add_row(self, others: Sequence[Value], work: Work, row: Value, column: Value) -> None:
        """Always in the order of the blocks."""
        width = self.results.width
        index = row * self.tile.pitch + column
        parts = [load_fragment(other, index, Access(static_range(width), wide=True)) for other in others]
        accumulators = elementwise(lambda *numbers: sum(numbers), self.element, *parts)
        self.results.write_row(accumulators, work.row + row, work.column + column, work.batch)
