"""The results of a convolution whose rows are output channels and whose columns are pixels of a row of a plane."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirt.dialects.kernel.warpgroup import ROWS
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import GroupSizes, Work
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import RowEpilogue
from mlirt.kernels.lib.cuda.warpgroups.tile_results import TileResults
from mlirt.kernels.lib.language import Value, value_of
from mlirt.kernels.lib.language.values import bool_of


class PlaneResults:
    """Writes a row of pixels of 64 output channels; `entries` are images, depth and height of the result."""

    def __init__(
        self,
        k: KernelBuilder,
        epilogue: RowEpilogue,
        tile: tuple[int, int, int],
        entries: tuple[Dim, Dim, Dim],
        sizes: tuple[int, Dim],
    ) -> None:
        """`sizes` are output channels and pixels of a row, `tile` those of a tile, and its rows of pixels between."""
        self.k, self.entries, self.rows = k, entries, sizes[0]
        self.are_whole = sizes[0] % tile[0] == 0
        self.has_whole_rows = isinstance(entries[2], int) and entries[2] % tile[1] == 0
        self.tiles = TileResults(
            k,
            GroupTile(ROWS, tile[2], 2),
            GroupSizes(*sizes, entries, 1),
            epilogue,
            in_fragment_order=False,
            places=self,
        )
        self._exists: bool | None = None

    def write(self, total: Value, thread: Value, part: Value, work: Work, at: Sequence[Value]) -> None:
        """The results of the `part`-th 64 channels of a tile: image, depth and row are `at`, if there is such a row."""
        k, (image, deep, y) = self.k, at
        depth, height = (k.size(size) for size in self.entries[1:])
        if not self.has_whole_rows:
            self._exists = bool_of(k.compare("slt", y, height))
            y = k.min(y, k.sub(height, 1))
        entry = value_of(k.add(k.mul(k.add(k.mul(image, depth), deep), height), y))
        self.tiles.write(total, self.tiles.begin(thread, part, Work(work.row, work.column, entry)))

    def place(self, work: Work, row: Value) -> tuple[Value, bool | None]:
        """Which output channel a row is, and whether it is one of a row of pixels that exists: else some channel."""
        k, here = self.k, value_of(self.k.add(work.row, row))
        exists: SSAValue | bool | None = self._exists
        if not self.are_whole:
            exists = k.both(exists, k.compare("slt", here, k.constant(self.rows)))
            here = value_of(k.min(here, self.rows - 1))
        return value_of(here), None if exists is None else bool_of(exists)


__all__ = ["PlaneResults"]
