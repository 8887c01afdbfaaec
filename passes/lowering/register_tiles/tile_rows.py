"""The loops around the register tiles of an image: panels of channels, rows, and tiles of pixels in a row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.passes.lowering.register_tiles.tile_code import Span, TileCode
from mlirt.passes.lowering.register_tiles.tile_tasks import Tasks


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
    """Where a task works: the image, the panel, and the row."""

    batch: SSAValue
    panel: SSAValue
    row: SSAValue


class TileRows(ABC):
    """A kernel under construction.

    for each task (panel, image, cut of the rows): for row in the cut: for pixel in the row, tile by tile: tile(..)
    """

    def __init__(self, code: TileCode, grid: Grid, tasks: Tasks) -> None:
        self.code, self.k, self.grid, self.tasks = code, code.k, grid, tasks

    def write(self) -> None:
        """Panels and cuts of rows are dealt out in either order; which one is a matter of arguments."""
        code, k, grid = self.code, self.k, self.grid
        extent = grid.length if grid.is_flat else grid.rows
        cuts = ceil_div(extent, self.tasks.rows)
        outer, inner = (grid.panels, cuts) if self.tasks.panel_first else (cuts, grid.panels)
        extents = [code.size("outer", outer), code.size("batch", grid.batch), code.size("inner", inner)]
        panel_first = code.size("panel_first", int(self.tasks.panel_first))
        with code.workers(extents, ["a", "n", "b"]) as (a, batch, b):
            difference = code.named(k.mul(k.sub(a, b), panel_first), "swap")
            panel, cut = code.named(k.add(b, difference), "panel"), code.named(k.sub(a, difference), "cut")
            size = code.size("rows_per_task", self.tasks.rows)
            first = code.named(k.mul(cut, size), "first_row")
            last = code.named(k.min(k.add(first, size), code.size("rows", extent)), "last_row")
            self.start_task(batch, panel)
            if grid.is_flat:
                self.row(Place(batch, panel, k.constant(0)), first, last)
            else:
                pixels = code.size("pixels", grid.length)
                code.count(first, last, 1, "row", lambda row: self.row(Place(batch, panel, row), k.constant(0), pixels))

    def tiles(self, place: Place, first: SSAValue, last: SSAValue, is_whole: bool) -> None:
        """The tiles of pixels first, .., last - 1; unless they are known to be whole, the last one may be cut."""
        code, k, count = self.code, self.k, self.grid.pixels
        if is_whole:
            code.count(first, last, count, "pixel", lambda pixel: self.tile(place, pixel, None))
            return
        whole = code.named(k.sub(last, k.rem(k.sub(last, first), count)), "whole")
        code.count(first, whole, count, "pixel", lambda pixel: self.tile(place, pixel, None))
        rest = code.named(k.sub(last, whole), "rest")
        k.when(k.compare("sgt", rest, 0), lambda: self.tile(place, whole, rest))

    @abstractmethod
    def start_task(self, batch: SSAValue, panel: SSAValue) -> None:
        """Compute what is the same for all rows of a task."""

    def row(self, place: Place, first: SSAValue, last: SSAValue) -> None:
        """The pixels of a row, or of a cut of the only one."""
        self.tiles(place, first, last, self.grid.length % self.grid.pixels == 0)

    @abstractmethod
    def tile(self, place: Place, pixel: SSAValue, rows: SSAValue | None) -> None:
        """The tile that starts at a pixel; with `rows` only so many pixels of it are there."""

    def spans(self, place: Place, block: SSAValue, pixel: SSAValue) -> list[Span]:
        """Where a tile lies along the dimensions of a blocked result."""
        return [
            Span(place.batch),
            Span(self.code.named(block, "block_out"), column=1),
            Span(place.row),
            Span(pixel, row=1),
            Span(self.k.constant(0), lane=1),
        ]
