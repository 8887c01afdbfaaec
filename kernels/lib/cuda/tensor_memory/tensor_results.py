"""The results of a tile whose accumulators lie in tensor memory: a warp loads some columns of its rows at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import Attribute

from mlirt.dialects.kernel.simt import WARP
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.tensor_memory.tensor_tile import TensorTile
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import GroupSizes
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import RowEpilogue
from mlirt.kernels.lib.cuda.warpgroups.tile_results import Piece, RowPlaces, TileResults
from mlirt.kernels.lib.language import Index, Value, kernel
from mlirt.kernels.lib.language.blackwell_words import tcgen05_fence_before, tcgen05_load
from mlirt.kernels.lib.language.hopper_words import Barrier
from mlirt.kernels.lib.language.simt_words import part_of, zeros

_COLUMNS = 64  # that are loaded at once: more of them take registers that the epilogue needs


@dataclass
class TensorAccumulators:
    """Those of 16 lanes from an address on; `free` is told when a warp has loaded the last ones.

    `some` holds where there are any: a sum without terms is zero.
    """

    address: Value
    element: Attribute
    free: Barrier
    thread: Value
    some: Index | bool
    first: int = field(default=-1)
    """The first column of those that are in registers."""
    loaded: Any = None


class TensorResults(TileResults):
    """Writes the results of tiles whose accumulators are `TensorAccumulators`."""

    def __init__(
        self,
        k: KernelBuilder,
        tile: TensorTile,
        sizes: GroupSizes,
        epilogue: RowEpilogue,
        *,
        in_fragment_order: bool,
        places: RowPlaces,
    ) -> None:
        super().__init__(k, tile, sizes, epilogue, in_fragment_order=in_fragment_order, places=places)
        self.length = min(self.length, _COLUMNS // 4)

    def joined_columns(self, accumulators: Any) -> Any:
        return accumulators

    def part(self, joined: Any, piece: Piece) -> Value:
        """The accumulators of a piece, which are loaded with those around them."""
        accumulators: TensorAccumulators = joined
        half, first = divmod(piece.first, self.tile.columns // 4)
        column = first * 4 // _COLUMNS * _COLUMNS
        count = min(_COLUMNS, self.tile.columns - column)
        if accumulators.first != column:
            accumulators.first = column
            loaded = self._load(accumulators, column, count)
            accumulators.loaded = super().joined_columns(loaded)
        return part_of(accumulators.loaded, half * (count // 4) + first - column // 4, piece.count)

    @kernel
    def _load(self, accumulators: TensorAccumulators, column: int, count: int) -> Value:
        element, address = accumulators.element, accumulators.address + column
        if accumulators.some is True:
            loaded = tcgen05_load(address, element, count)
        else:
            loaded = zeros(element, count // 2)
            if accumulators.some:
                loaded = tcgen05_load(address, element, count)
        if column + count == self.tile.columns:
            tcgen05_fence_before()
            if accumulators.thread % WARP == 0:
                accumulators.free.arrive()
        return loaded
