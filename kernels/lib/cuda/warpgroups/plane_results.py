"""The results of a product whose rows are output channels and whose columns are pixels of a row of a plane."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.dialects.kernel.buffers import length
from mlirt.dialects.kernel.warpgroup import ROWS
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import GroupSizes, Work
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import WIDTH, RowEpilogue
from mlirt.kernels.lib.cuda.warpgroups.tile_results import TileResults
from mlirt.kernels.lib.language import Value, kernel, value_of
from mlirt.kernels.lib.language.simt_words import element_at, fragment
from mlirt.kernels.lib.language.words import extent

_PAIR = 2  # neighbouring sums of a thread


class PlaneResults:
    """Writes rows of pixels of 64 output channels; `entries` are images, depth and height of the result."""

    def __init__(
        self,
        k: KernelBuilder,
        epilogue: RowEpilogue,
        tile: tuple[int, int, int],
        entries: tuple[Dim, Dim, Dim],
        sizes: tuple[int, Dim],
        apart: tuple[int, int, int] = (1, 1, 1),
    ) -> None:
        """`sizes` are output channels and pixels of a row, `tile` those of a tile, and its rows of pixels between.

        A pixel of the tile has `apart` results along each dimension.
        """
        self.entries, self.rows, self.apart = entries, sizes[0], apart[-1]
        self.are_whole = sizes[0] % tile[0] == 0
        own = (apart[0], tile[1] * apart[1])
        self.are_inside = [
            isinstance(size, int) and size % each == 0 for size, each in zip(entries[1:], own, strict=True)
        ]
        self.tiles = TileResults(
            k,
            GroupTile(ROWS, tile[2] * self.apart, 2),
            GroupSizes(*sizes, entries, 1),
            epilogue,
            in_fragment_order=self.apart > 1,
            places=self,
        )
        self._exists: bool = True  # whether there is the row of pixels that is written

    @staticmethod
    def width(apart: int) -> int:
        """Neighbouring pixels of a thread."""
        return WIDTH if apart == 1 else _PAIR * apart

    def write(self, totals: Sequence[Value], thread: Value, part: Value, work: Work, at: Sequence[Value]) -> None:
        """The results of the `part`-th 64 channels of a tile: image, depth and row are `at`, if there is such a row.

        The sums are those of each remainder along a row.
        """
        entry, self._exists = self._entry(at)
        total = totals[0] if self.apart == 1 else self._interleaved(totals)
        self.tiles.write(total, self.tiles.begin(thread, part, Work(work.row, work.column, entry)))

    @kernel
    def _entry(self, at: Sequence[Value]) -> tuple[Value, bool]:
        """The number of a row of pixels of the result, and whether there is one: else that of some row."""
        entry, exists = at[0], True
        for here, size, is_inside in zip(at[1:], self.entries[1:], self.are_inside, strict=True):
            if not is_inside:
                exists = exists and here < extent(size)
                here = min(here, extent(size) - 1)
            entry = entry * extent(size) + here
        return entry, exists

    def _interleaved(self, totals: Sequence[Value]) -> Value:
        """Sums in the order of one product whose columns are the results of a row, a thread's neighbours together."""
        count, elements = len(totals), list[Value]()
        each = length(totals[0]) // 2  # of a row of the product
        for number in range(2 * each * count):
            group, half, pair = number // (2 * _PAIR), number // _PAIR % 2, number % _PAIR
            neighbour, remainder = divmod(group * _PAIR + pair, count)
            source = neighbour // _PAIR * (2 * _PAIR) + half * _PAIR + neighbour % _PAIR
            elements.append(element_at(totals[remainder], source))
        return fragment(elements)

    @kernel
    def place(self, work: Work, row: Value) -> tuple[Value, bool | None]:
        """Which output channel a row is, and whether it is one of a row of pixels that exists: else some channel."""
        here, exists = work.row + row, self._exists
        if not self.are_whole:
            exists = exists and here < self.rows
            here = min(here, self.rows - 1)
        return value_of(here), None if exists is True else exists


__all__ = ["PlaneResults"]
