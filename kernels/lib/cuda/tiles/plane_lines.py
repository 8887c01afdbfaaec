"""Where a tile of pixels finds the channels of its windows in shared memory, filled from images that lie in planes.

A line is 16 bytes: eight channels of a pixel, or where there are few the channels of neighbouring pixels, which are
neighbouring taps of the window. A group is what one line of each pixel of the tile is multiplied with; another tap of
the window is another group, whose lines begin some lines further. Two groups are a step of the matrix unit:

    planes        lines of pixels      groups of a 1 x 3 window of 3 channels, two taps a line
    a0 b0 c0 ..   a0 a1 a2 0 b0 b1 b2 0      0: taps 0 and 1, from line 0
    a1 b1 c1 ..   b0 b1 b2 0 c0 c1 c2 0      1: tap 2 as the second one of its line, from line 1
    a2 b2 c2 ..   ..
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from math import prod
from typing import TYPE_CHECKING

from mlirt.dialects.layout import arranged

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

LINE = 8
"""Elements of a line."""
ROWS, COLUMNS, DEPTH = 16, 8, 16
"""Of a matrix product: output channels, pixels, and elements along the depth."""
WARPS, WARP_COLUMNS = 8, 4
"""Of a block, and matrices of pixels of a warp."""
_MAX_BLOCKS = 2  # of channels that are in shared memory at once


@dataclass(frozen=True)
class PlaneLines:
    """The lines of a tile of `rows[0]` x `rows[1]` rows of `width` pixels of a volume; images have a depth of one.

    `taps`, `strides`, `dilations` and `padding` in front are those of the window, `channels` those of the input.
    """

    channels: int
    taps: tuple[int, int, int]
    strides: tuple[int, int, int]
    dilations: tuple[int, int, int]
    padding: tuple[int, int, int]
    width: int
    rows: tuple[int, int]

    @property
    def interleave(self) -> tuple[int, int, int]:
        """Results of a pixel of the tile along each dimension."""
        return 1, 1, 1

    @cached_property
    def part(self) -> int:
        """Channels of a pixel in a line, those of zeros included."""
        return next(size for size in (1, 2, 4, LINE) if size >= min(self.channels, LINE))

    @cached_property
    def fold(self) -> int:
        """Pixels of a line."""
        return min(LINE // self.part, self.taps[-1])

    @cached_property
    def blocks(self) -> int:
        """Blocks of channels that are in shared memory at once."""
        return min(_MAX_BLOCKS, -(-self.channels // LINE))

    @cached_property
    def slabs(self) -> int:
        """How often the lines are filled for a tile."""
        return -(-self.channels // (self.blocks * LINE))

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """Along a row of the window, the first tap of each line: none reaches beyond the last tap."""
        last = self.taps[-1] - self.fold
        return tuple(min(first, last) for first in range(0, self.taps[-1], self.fold))

    @cached_property
    def sizes(self) -> tuple[int, int, int]:
        """Lines along each dimension."""
        extents = (*self.rows, self.width)
        taps = (*self.taps[:-1], self.firsts[-1] + 1)
        return tuple(
            (extent - 1) * stride + (count - 1) * dilation + 1
            for extent, stride, count, dilation in zip(extents, self.strides, taps, self.dilations, strict=True)
        )  # pyright: ignore[reportReturnType]

    @property
    def lines(self) -> int:
        """Of all blocks of channels."""
        return self.blocks * prod(self.sizes)

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """The line from which each group begins."""
        found = list[int]()
        for block, z, y, first in product(range(self.blocks), *map(range, self.taps[:-1]), self.firsts):
            at = (z * self.dilations[0], y * self.dilations[1], first * self.dilations[2])
            found.append(block * prod(self.sizes) + self.place(*at))
        return tuple(found)

    @cached_property
    def phases(self) -> tuple[tuple[int, ...], ...]:
        """The groups of each result of a pixel."""
        return (self.groups,)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first step of the matrix unit for each result of a pixel, and their end; a step has two groups."""
        return tuple(accumulate((-(-len(groups) // 2) for groups in self.phases), initial=0))

    @property
    def steps(self) -> int:
        """Of the matrix unit, for all results of a pixel."""
        return self.starts[-1]

    @property
    def fills(self) -> int:
        """How often lines are filled for a tile: all slabs for the results of each row, or all that there is once."""
        return self.slabs if self.slabs == 1 else self.slabs * prod(self.interleave[:2])

    def place(self, z: int, y: int, x: int) -> int:
        """A line of a block of channels."""
        return (z * self.sizes[1] + y) * self.sizes[2] + x

    @property
    def pair_step(self) -> int:
        """Lines between the first two matrices of pixels of a warp and its last two."""
        return 2 * COLUMNS * self.strides[2] if self.is_wide else self.strides[1] * self.sizes[2]

    @property
    def is_wide(self) -> bool:
        """Whether the pixels of a warp are one row of the tile, not two."""
        return self.width == WARP_COLUMNS * COLUMNS

    @property
    def zero_lines(self) -> int:
        """Lines of zeros behind the others, for the group that the last step lacks."""
        return self.pair_step + 1 if any(len(groups) % 2 for groups in self.phases) else 0

    def packed(self, tiles: int, weights: Array) -> Array:
        """The weights as registers of each lane: `[block, slab, step, tile, lane, register]`.

        A block has `tiles` tiles of output channels. Two halves are a register; the order is that of `mma.sync`.
        """
        import numpy as np

        lines = self.lines_of_weights(weights)
        padded = np.zeros((*lines[0].shape[:2], self.steps * DEPTH), weights.dtype)
        for start, own in zip(self.starts, lines, strict=False):
            padded[..., start * DEPTH : start * DEPTH + own.shape[-1]] = own
        places = "(b i s g) l (n h t e)", "b l n i (g t) (h s e)"
        made = arranged(padded, *places, i=tiles, s=2, g=8, h=2, t=4, e=2)
        return np.ascontiguousarray(made).view(np.int32)

    def lines_of_weights(self, weights: Array) -> list[Array]:
        """`[output channel, channel, *taps]` as `[output channel, slab, elements of all groups]` of each phase."""
        import numpy as np

        count, channels = weights.shape[:2]
        whole = np.zeros((count, self.slabs * self.blocks * self.part, *self.taps), weights.dtype)
        whole[:, :channels] = weights.reshape(count, channels, *self.taps)
        split = whole.reshape(count, self.slabs, self.blocks, self.part, prod(self.taps[:-1]), self.taps[-1])
        groups = np.zeros((*split.shape[:3], split.shape[4], len(self.firsts), LINE), weights.dtype)
        for number, first in enumerate(self.firsts):
            for tap in range(number * self.fold, min(self.taps[-1], (number + 1) * self.fold)):
                start = (tap - first) * self.part
                groups[..., number, start : start + self.part] = split[..., tap].swapaxes(3, 4)
        return [groups.reshape(count, self.slabs, -1)]


__all__ = ["COLUMNS", "DEPTH", "LINE", "ROWS", "WARPS", "WARP_COLUMNS", "PlaneLines"]
