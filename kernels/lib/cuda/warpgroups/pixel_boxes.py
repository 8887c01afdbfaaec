"""Which boxes of input pixels a tile of a convolution's result needs, and where in them a window's positions look.

A tile is `height` x `width` pixels of the result, a row of the product each. All that its windows read lies in one box,
`pitch` pixels wide, which is copied to shared memory once: for another position of the window the same rows are found
some lines later. Of a 2 x 3 tile and a 3 x 3 window:

    box  a b c d e      position (0, 0) reads  a b c  f g h
         f g h i j      position (1, 2) reads  h i j  m n o
         k l m n o
         p q r s t

Where the window moves by several pixels at once, those of each remainder have a box of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from mlirt.dialects.kernel.warpgroup import GROUP_LINES, ROWS

_SWIZZLED = 1024  # bytes that boxes are aligned to
_MAX_BOX_SIDE = 256  # side of a box


@dataclass(frozen=True)
class Positions:
    """Positions of a window along a dimension that read pixels of one remainder.

    The `i`-th of them is position `taps[i]`. For result `y` it reads pixel `y + first + step * i` among those whose
    number has this remainder.
    """

    remainder: int
    first: int
    step: int
    taps: tuple[int, ...]

    @property
    def reach(self) -> int:
        """Between the first and the last of them, in pixels."""
        return self.step * (len(self.taps) - 1)

    @staticmethod
    def along(taps: int, stride: int, dilation: int, pre: int) -> list[Positions]:
        """Those of a window along a dimension."""
        found: dict[int, list[tuple[int, int]]] = {}
        for tap in range(taps):
            first, remainder = divmod(tap * dilation - pre, stride)
            found.setdefault(remainder, []).append((tap, first))
        return [
            Positions(remainder, ones[0][1], ones[1][1] - ones[0][1] if ones[1:] else 1, tuple(tap for tap, _ in ones))
            for remainder, ones in sorted(found.items())
        ]


@dataclass(frozen=True)
class PixelBox:
    """A box of pixels, so many `rows` of them, that lies `start` lines after the first one of its tile."""

    down: Positions
    across: Positions
    rows: int
    start: int

    @property
    def taps(self) -> Iterator[tuple[int, int]]:
        """The window's positions that look into it, in order."""
        return product(self.down.taps, self.across.taps)


@dataclass(frozen=True)
class PixelBoxes:
    """The boxes of a tile. Row `8 i + j` of the product is line `step * i + j` of a box."""

    height: int
    width: int
    pitch: int
    step: int
    boxes: tuple[PixelBox, ...]
    lines: int
    """Of shared memory, for all of them."""

    @staticmethod
    def of(spatial: Sequence[tuple[int, int, int, int]], taps: Sequence[int], width: int, line: int) -> PixelBoxes:
        """Those of tiles `width` pixels wide; `spatial` has stride, dilation and padding along both dimensions.

        Tiles of 8 pixels have one group of lines in each row; those of others have rows of lines without a gap.
        """
        down, across = (
            Positions.along(count, stride, dilation, pre)
            for count, (stride, dilation, pre, _) in zip(taps, spatial, strict=True)
        )
        pitch = width + max(one.reach for one in across)
        step = pitch if width == GROUP_LINES else GROUP_LINES
        height = ROWS // GROUP_LINES if width == GROUP_LINES else (ROWS - width) // pitch + 1
        whole, start, boxes = _SWIZZLED // line, 0, list[PixelBox]()
        for one, other in product(down, across):
            last = (ROWS // GROUP_LINES - 1) * step + GROUP_LINES + one.reach * pitch + other.reach
            boxes.append(PixelBox(one, other, -(-last // pitch), start))
            start += -(-boxes[-1].rows * pitch // whole) * whole
        return PixelBoxes(height, width, pitch, step, tuple(boxes), start)

    @property
    def fit(self) -> bool:
        """Whether the device can copy them, and a tile has a pixel."""
        return self.height > 0 and self.pitch <= _MAX_BOX_SIDE and all(box.rows <= _MAX_BOX_SIDE for box in self.boxes)

    @property
    def copied(self) -> int:
        """Pixels that are copied for a tile."""
        return sum(box.rows * self.pitch for box in self.boxes)

    @property
    def taps(self) -> list[tuple[int, int]]:
        """The window's positions, box by box."""
        return [tap for box in self.boxes for tap in box.taps]
