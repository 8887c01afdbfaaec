"""Which pixel of the result a row of a tile is, where tiles are boxes of pixels."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.kernel.warpgroup import GROUP_LINES, ROWS
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import Work
from mlirt.kernels.lib.cuda.warpgroups.pixel_boxes import PixelBoxes
from mlirt.kernels.lib.language.values import Value, bool_of


@dataclass(frozen=True)
class BoxRows:
    """Tiles of images, `images` x `height` x `width` pixels, whose numbers go along rows."""

    k: KernelBuilder
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

    def corner(self, tile: SSAValue) -> list[SSAValue]:
        """The image of a tile, and its first pixel's row and place in it."""
        k = self.k
        rest, across = k.div(tile, k.size(self._across)), k.rem(tile, k.size(self._across))
        image, down = k.div(rest, k.size(self._down)), k.rem(rest, k.size(self._down))
        return [image, k.mul(down, self.boxes.height), k.mul(across, self.boxes.width)]

    def place(self, work: Work, row: SSAValue) -> tuple[Value, bool | None]:
        """The number of the pixel that a row of a tile is, and whether it is one: else that of some pixel."""
        k = self.k
        image, y, x = self.corner(work.row)
        group, within = k.div(row, GROUP_LINES), k.rem(row, GROUP_LINES)
        if self.boxes.width == GROUP_LINES:
            down, across = group, within
        else:
            down, across = k.div(row, self.boxes.pitch), k.rem(row, self.boxes.pitch)
        y, x = k.add(y, down), k.add(x, across)
        height, width = k.size(self.height), k.size(self.width)
        number = k.add(k.mul(k.add(k.mul(image, height), y), width), x)
        if self._are_whole:
            return number, None
        inside = k.both(k.compare("slt", y, height), k.compare("slt", x, width))
        if self.boxes.height * self.boxes.width < ROWS:
            own = k.compare("slt", down, self.boxes.height), k.compare("slt", across, self.boxes.width)
            inside = k.both(inside, k.both(*own))
        return k.min(number, k.sub(k.size(self.pixels), 1)), None if inside is None else bool_of(inside)

    @property
    def _are_whole(self) -> bool:
        """Whether all rows of all tiles are pixels."""
        boxes = self.boxes
        sizes = zip((self.height, self.width), (boxes.height, boxes.width), strict=True)
        divides = all(isinstance(size, int) and size % own == 0 for size, own in sizes)
        return divides and boxes.height * boxes.width == ROWS
