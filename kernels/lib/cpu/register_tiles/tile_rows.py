"""The loops around the register tiles of an image: panels of channels, rows, and tiles of pixels in a row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.cpu.register_tiles.tile_code import Span, TileCode
from mlirt.kernels.lib.cpu.register_tiles.tile_tasks import Tasks
from mlirt.kernels.lib.language import Index, Value, build, kernel
from mlirt.kernels.lib.language.tile_words import tasks
from mlirt.kernels.lib.language.words import ceil_div, size


@dataclass(frozen=True)
class Grid:
    """The result as tiles see it: images, rows, pixels in a row, panels of channels, and pixels in a tile.

    In a flat grid all rows are one: the pixels of an image lie behind each other, and tasks are cuts of that one row.
    """

    batch: Dim
    rows: Dim
    length: Dim
    panels: int
    pixels: int
    is_flat: bool = False


@dataclass(frozen=True)
class Place:
    """Where a task works: the image, the panel, and the row; and what is the same for all rows of the task."""

    batch: Value
    panel: Value
    row: Index
    task: tuple[Value, ...]


class TileRows(ABC):
    """A kernel under construction.

    for each task (panel, image, cut of the rows): for row in the cut: for pixel in the row, tile by tile: tile(..)
    """

    def __init__(self, code: TileCode, grid: Grid, tasks: Tasks) -> None:
        self.code, self.k, self.grid, self.tasks = code, code.k, grid, tasks

    def write(self) -> None:
        """Panels and cuts of rows are dealt out in either order; which one is a matter of arguments."""
        build(self.k, self._tasks)

    @kernel
    def _tasks(self) -> None:
        grid = self.grid
        extent = grid.length if grid.is_flat else grid.rows
        cuts = ceil_div(extent, self.tasks.rows)
        outer, inner = (grid.panels, cuts) if self.tasks.panel_first else (cuts, grid.panels)
        extents = [size("outer", outer), size("batch", grid.batch), size("inner", inner)]
        panel_first = size("panel_first", int(self.tasks.panel_first))
        for a, n, b in tasks(extents):
            swap = (a - b) * panel_first
            panel, cut = b + swap, a - swap
            count = size("rows_per_task", self.tasks.rows)
            first_row = cut * count
            last_row = min(first_row + count, size("rows", extent))
            task = self.start_task(n, panel)
            if grid.is_flat:
                self.row(Place(n, panel, 0, task), first_row, last_row)
            else:
                pixels = size("pixels", grid.length)
                for row in range(first_row, last_row):
                    self.row(Place(n, panel, row, task), 0, pixels)

    @kernel
    def tiles(self, place: Place, first: Index, last: Value, is_whole: bool) -> None:
        """The tiles of pixels first, .., last - 1; unless they are known to be whole, the last one may be cut."""
        count = self.grid.pixels
        whole = last if is_whole else last - (last - first) % count
        for pixel in range(first, whole, count):
            self.tile(place, pixel, None)
        if not is_whole:
            rest = last - whole
            if rest > 0:
                self.tile(place, whole, rest)

    @abstractmethod
    def start_task(self, batch: Value, panel: Value) -> tuple[Value, ...]:
        """What is the same for all rows of a task, such as where its operands start."""

    def row(self, place: Place, first: Index, last: Value) -> None:
        """The pixels of a row, or of a cut of the only one."""
        self.tiles(place, first, last, self.grid.length % self.grid.pixels == 0)

    def tile(self, place: Place, pixel: Index, rows: Value | None) -> None:
        """The tile that starts at a pixel; with `rows` only so many pixels of it are there."""
        raise NotImplementedError(f"{type(self).__name__} has no tiles that may be cut")

    def spans(self, place: Place, block: Index, pixel: Index) -> list[Span]:
        """Where a tile lies along the dimensions of a blocked result."""
        k = self.k
        return [
            Span(k.index(place.batch)),
            Span(k.named(k.index(block), "block_out"), column=1),
            Span(k.index(place.row)),
            Span(k.index(pixel), row=1),
            Span(k.index(0), lane=1),
        ]
