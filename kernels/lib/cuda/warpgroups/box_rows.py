"""Which pixel of the result a row of a tile is, where tiles are boxes of pixels."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.kernel.warpgroup import GROUP_LINES, ROWS
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import Work
from mlirt.kernels.lib.cuda.warpgroups.pixel_boxes import PixelBoxes
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.words import extent


@dataclass(frozen=True)
class BoxRows:
    """Tiles of images, `images` x `height` x `width` pixels, whose numbers go along rows."""

    boxes: PixelBoxes
    images: Dim
    height: Dim
    width: Dim

    @property
    def pixels(self) -> Dim:
        return self.images * self.height * self.width

    @property
    def _down(self) -> Dim:
        return ceil_div(self.height, self.boxes.height)

    @property
    def _across(self) -> Dim:
        return ceil_div(self.width, self.boxes.width)

    @property
    def tiles(self) -> Dim:
        return self.images * self._down * self._across

    @kernel
    def corner(self, tile: Value) -> list[Value]:
        """The image of a tile, and its first pixel's row and place in it."""
        rest, across = tile // extent(self._across), tile % extent(self._across)
        image, down = rest // extent(self._down), rest % extent(self._down)
        return [image, down * self.boxes.height, across * self.boxes.width]

    @kernel
    def place(self, work: Work, row: Value) -> tuple[Value, bool | None]:
        """The number of the pixel that a row of a tile is, and whether it is one: else that of some pixel."""
        image, y, x = self.corner(work.row)
        pitch = GROUP_LINES if self.boxes.width == GROUP_LINES else self.boxes.pitch
        down, across = row // pitch, row % pitch
        y, x = y + down, x + across
        height, width = extent(self.height), extent(self.width)
        number = (image * height + y) * width + x
        if self._are_whole:
            return number, None
        inside = y < height and x < width
        if self.boxes.height * self.boxes.width < ROWS:
            inside = inside and down < self.boxes.height and across < self.boxes.width
        return min(number, extent(self.pixels) - 1), inside

    @property
    def _are_whole(self) -> bool:
        """Whether all rows of all tiles are pixels."""
        boxes = self.boxes
        sizes = zip((self.height, self.width), (boxes.height, boxes.width), strict=True)
        divides = all(isinstance(size, int) and size % own == 0 for size, own in sizes)
        return divides and boxes.height * boxes.width == ROWS
