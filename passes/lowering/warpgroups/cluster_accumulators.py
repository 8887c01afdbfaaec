"""Split-K over a cluster: each block keeps its own accumulators, then adds up some rows of all and writes them."""

from __future__ import annotations

from functools import reduce

from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.kernel.cluster import ClusterBarrierOp, ClusterRankOp, RemoteSharedOp
from mlirt.dialects.kernel.core import YieldOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp, StoreFragmentOp
from mlirt.dialects.kernel.fragment_map import MapFragmentOp
from mlirt.dialects.kernel.simt import SharedOp
from mlirt.dialects.kernel.warpgroup import WARPGROUP
from mlirt.passes.lowering.kernel_builder import KernelBuilder
from mlirt.passes.lowering.warpgroups.group_sizes import Work
from mlirt.passes.lowering.warpgroups.group_tile import GroupTile
from mlirt.passes.lowering.warpgroups.row_epilogue import QUAD
from mlirt.passes.lowering.warpgroups.tile_results import TileResults


class ClusterAccumulators:
    """The sums of a block's tile in shared memory, where the other blocks of its cluster read them."""

    def __init__(
        self, k: KernelBuilder, tile: GroupTile, element: Attribute, results: TileResults, thread: SSAValue
    ) -> None:
        self.k, self.tile, self.element, self.results, self.thread = k, tile, element, results, thread
        self.memory = k.value(SharedOp(tile.rows * tile.pitch, element))
        self.memory.name_hint = "sums"

    def keep(self, sums: SSAValue, in_fragment_order: bool) -> None:
        """Write this block's sums to shared memory."""
        k, pitch, width = self.k, self.tile.pitch, self.results.width
        lane, warp = k.rem(self.thread, 32), k.div(self.thread, 32)
        own, step = (width, 2) if in_fragment_order else (2, 8)
        row, column = k.add(k.mul(warp, 16), k.div(lane, 4)), k.mul(k.rem(lane, 4), own)
        in_group = width // 2
        blocks = range(self.tile.columns // 8)
        places = [QUAD * width * (j // in_group) + step * (j % in_group) for j in blocks]
        offsets = [8 * h * pitch + place + e for place in places for h in range(2) for e in range(2)]
        index = k.add(k.mul(row, pitch), column)
        k.insert(StoreFragmentOp(sums, self.memory, index, offsets, wide=True))

    def write(self, work: Work) -> None:
        """Add up what the blocks have kept, and write the results."""
        k = self.k
        k.insert(ClusterBarrierOp())
        k.when(k.compare("slt", self.thread, WARPGROUP), lambda: self._add_up(work))
        # No block may end while another one reads its sums.
        k.insert(ClusterBarrierOp())

    def _add_up(self, work: Work) -> None:
        """Each block of the cluster takes some rows, always in the order of the blocks."""
        k, tile, width = self.k, self.tile, self.results.width
        across = tile.columns // width
        rows = tile.rows // tile.split
        others = [k.value(RemoteSharedOp(self.memory, k.constant(rank))) for rank in range(tile.split)]
        start = k.mul(k.value(ClusterRankOp()), rows)
        places = rows * across
        for number in range(-(-places // WARPGROUP)):
            place = k.add(self.thread, number * WARPGROUP)
            row, column = k.add(start, k.div(place, across)), k.mul(k.rem(place, across), width)

            def one(row: SSAValue = row, column: SSAValue = column) -> None:
                self._add_row(others, work, row, column)

            if (number + 1) * WARPGROUP <= places:
                one()
            else:
                k.when(k.compare("slt", place, places), one)

    def _add_row(self, others: list[SSAValue], work: Work, row: SSAValue, column: SSAValue) -> None:
        k, width = self.k, self.results.width
        index = k.add(k.mul(row, self.tile.pitch), column)
        parts = [k.value(LoadFragmentOp(other, index, range(width), wide=True)) for other in others]
        added = MapFragmentOp(parts, self.element, width)
        with k.inside(added.body.block):
            scalars = k.scalars(self.element)
            k.insert(YieldOp(operands=[[reduce(scalars.add, added.body.block.args)]]))
        sums = k.value(added)
        self.results.write_row(sums, k.add(work.row, row), k.add(work.column, column), work.batch)
