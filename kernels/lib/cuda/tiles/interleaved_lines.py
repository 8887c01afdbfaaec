"""Where a deconvolution with strides finds the pixels of each of its results, in the lines of one tile of the input.

Result `y` of an axis is `stride * a + r`. All results with remainder `r` are a convolution of the input with the taps
`t` of the kernel for which `r + pre - t * dilation` is a multiple of the stride: tap `t` meets pixel
`a + (r + pre - t * dilation) / stride`. So the windows of all remainders lie in lines that are filled once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from mlirt.kernels.lib.cuda.tiles.plane_lines import LINE, PlaneLines

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_MAX_BYTES = 56 * 1024  # of lines that are in shared memory at once
_ONES = (1, 1, 1)


@dataclass(frozen=True)
class InterleavedAxis:
    """One spatial dimension of a deconvolution, with `pre` results cut off in front."""

    stride: int = 1
    dilation: int = 1
    window: int = 1
    pre: int = 0

    @cached_property
    def offsets(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each remainder its taps of the kernel, and the pixel that each meets, from that of the result on."""
        return tuple(tuple(self._of(remainder)) for remainder in range(self.stride))

    def _of(self, remainder: int) -> Iterator[tuple[int, int]]:
        for tap in range(self.window):
            pixel, rest = divmod(remainder + self.pre - tap * self.dilation, self.stride)
            if rest == 0:
                yield tap, pixel

    @property
    def first(self) -> int:
        """The first pixel that a tap meets."""
        return min(pixel for taps in self.offsets for _, pixel in taps)

    @property
    def taps(self) -> int:
        """How many pixels the taps of all remainders meet."""
        return max(pixel for taps in self.offsets for _, pixel in taps) - self.first + 1


@dataclass(frozen=True)
class InterleavedLines(PlaneLines):
    """The lines of a tile of `rows` and `width` pixels of the input, each of which has a result for each remainder."""

    axes: tuple[InterleavedAxis, ...]
    most: int
    """Steps of the matrix unit for lines that are filled at once."""

    @staticmethod
    def of(
        axes: Sequence[InterleavedAxis], channels: int, width: int, rows: tuple[int, int], most: int
    ) -> InterleavedLines:
        """Those of a deconvolution of images or volumes with so many input channels."""
        whole = (*[InterleavedAxis()] * (3 - len(axes)), *axes)
        deep, high, wide = (axis.taps for axis in whole)
        front, above, left = (-axis.first for axis in whole)
        padding = (front, above, left)
        return InterleavedLines(channels, (deep, high, wide), _ONES, _ONES, padding, width, rows, whole, most)

    @property
    def interleave(self) -> tuple[int, int, int]:
        """Results of a pixel of the tile along each dimension: the strides."""
        deep, high, wide = (axis.stride for axis in self.axes)
        return deep, high, wide

    @cached_property
    def fold(self) -> int:
        """Pixels of a line: one, as those of a line would be taps of several remainders."""
        return 1

    @cached_property
    def blocks(self) -> int:
        """Blocks of channels that are in shared memory at once: all where they fit."""
        count, taps = -(-self.channels // LINE), sum(map(len, self.taps_of_phases))
        fits = _MAX_BYTES // (prod(self.sizes) * LINE * 2)
        slabs = -(-count // max(1, min(fits, 2 * self.most // max(taps, 1))))
        return -(-count // slabs)

    @cached_property
    def taps_of_phases(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each result of a pixel the taps of the kernel, counted row by row, and the line that each meets first."""
        found = list[tuple[tuple[int, int], ...]]()
        for axes in product(*(axis.offsets for axis in self.axes)):
            taps = list[tuple[int, int]]()
            for z, y, x in product(*axes):
                tap = (z[0] * self.axes[1].window + y[0]) * self.axes[2].window + x[0]
                at = [pixel + pad for (_, pixel), pad in zip((z, y, x), self.padding, strict=True)]
                taps.append((tap, self.place(at[0], at[1], at[2])))
            found.append(tuple(taps))
        return tuple(found)

    @cached_property
    def phases(self) -> tuple[tuple[int, ...], ...]:
        """The groups of each result of a pixel."""
        size = prod(self.sizes)
        return tuple(
            tuple(block * size + line for block in range(self.blocks) for _, line in taps)
            for taps in self.taps_of_phases
        )

    def lines_of_weights(self, weights: Array) -> list[Array]:
        """`[channel, output channel, *taps]` as `[output channel, slab, elements of all groups]` of each phase."""
        import numpy as np

        channels, count = weights.shape[:2]
        whole = np.zeros((count, self.slabs * self.blocks * LINE, prod(weights.shape[2:])), weights.dtype)
        whole[:, :channels] = weights.reshape(channels, count, -1).swapaxes(0, 1)
        split = whole.reshape(count, self.slabs, self.blocks, LINE, -1)
        return [
            split[..., [tap for tap, _ in taps]]
            .swapaxes(3, 4)
            .reshape(count, self.slabs, self.blocks * len(taps) * LINE)
            for taps in self.taps_of_phases
        ]


__all__ = ["InterleavedAxis", "InterleavedLines"]
