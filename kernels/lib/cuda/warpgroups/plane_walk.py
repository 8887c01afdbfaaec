"""How a window walks over planes of channels whose pixels are columns of a product, and what is copied for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from mlirt.dialects.kernel.warpgroup import GROUP_LINES
from mlirt.dialects.layout import arranged

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

GROUP = 8
"""Neighbouring columns that a thread writes together."""
COPY = 40
"""Cycles that a thread needs to start a copy beyond the usual ones, about; not measured."""
_STEP = 138  # cycles that 64 columns of a step take by their bytes and products, about

Axis = tuple[int, int, int, int]
"""Stride, dilation, padding in front and behind."""


@dataclass(frozen=True)
class PlaneWalk:
    """A window of `taps` that walks over planes: `made` positions of an image of `sizes`, outermost first.

    The `flat` innermost dimensions are walked through as one, `depth` elements of 16 bits are a line. The taps along
    dimension `stacked` are copied at once, as lines of a dimension of their own.
    """

    sizes: tuple[int, ...]
    made: tuple[int, ...]
    taps: tuple[int, ...]
    spatial: tuple[Axis, ...]
    channels: int
    flat: int
    depth: int
    stacked: int | None = None

    @staticmethod
    def of(
        sizes: Sequence[int],
        made: Sequence[int],
        taps: Sequence[int],
        spatial: Sequence[Axis],
        channels: int,
        *,
        depth: int,
        joined: int,
    ) -> PlaneWalk | None:
        """The walk with the fewest columns and copies, where up to `joined` dimensions are one piece of memory; None
        for none.
        """
        given = tuple(sizes), tuple(made), tuple(taps), tuple(spatial), channels
        axes = (None, *range(len(taps) - 1))
        found = [PlaneWalk(*given, flat, depth, axis) for flat in range(1, joined + 1) for axis in axes]
        possible = (one for one in found if one.is_possible)
        return min(possible, key=lambda one: (one.columns, one.cycles), default=None)

    @property
    def is_possible(self) -> bool:
        """Whether lines are neighbours, and groups of columns lie in one row of the result."""
        inner = self.spatial[-self.flat :]
        stays = all(stride == 1 for stride, *_ in inner)
        inside = all(pre == 0 and post <= 0 for _, _, pre, post in inner[1:])
        whole = all(step % GROUP == 0 for _, step in self.rows[:-1])
        return stays and inside and whole and (self.stacked is None or self._stacks(self.stacked))

    @property
    def is_aligned(self) -> bool:
        """Whether dense planes, and rows of them where these are walked through, begin where the device can copy."""
        return all(prod(self.sizes[axis:]) % GROUP == 0 for axis in range(self.lead + 1))

    def _stacks(self, axis: int) -> bool:
        """Whether all taps along a dimension lie in the image, at steps that the device can copy, and fit a line."""
        _, _, pre, post = self.spatial[axis]
        inside = pre == 0 and post <= 0 and self.taps[axis] > 1
        return inside and self.jump % GROUP == 0 and self.lead <= 1 and self.lines <= self.depth and self.blocks == 1

    @property
    def jump(self) -> int:
        """Elements from one of the stacked taps to the next one."""
        assert self.stacked is not None
        return self.spatial[self.stacked][1] * prod(self.sizes[self.stacked + 1 :])

    @cached_property
    def rows(self) -> list[tuple[int, int]]:
        """Lengths of the flat positions that are results and the positions from one to the next, outermost first; those
        without gaps as one.
        """
        found = [(self.made[-1], 1)]
        pitch = self.sizes[-1]
        for axis in range(2, self.flat + 1):
            length, step = found[0]
            if length * step == pitch:
                found[0] = (self.made[-axis] * length, step)
            else:
                found.insert(0, (self.made[-axis], pitch))
            pitch *= self.sizes[-axis]
        return found

    @property
    def lead(self) -> int:
        """How many dimensions are walked through row by row."""
        return len(self.sizes) - self.flat

    @property
    def length(self) -> int:
        """Positions from the first to the last one of a row."""
        return sum((length - 1) * step for length, step in self.rows) + 1

    @property
    def pitch(self) -> int:
        """Columns from a row to the next one: whole lines."""
        return -(-self.length // self.depth) * self.depth

    @property
    def count(self) -> int:
        """Of rows in an image."""
        return prod(self.made[: self.lead])

    @property
    def columns(self) -> int:
        """Of an image."""
        return self.length if self.count == 1 else self.count * self.pitch

    @property
    def unit(self) -> int:
        """Channels that are copied at once, with zeros behind the last one."""
        return next(size for size in (GROUP_LINES, 16, 32, self.depth) if size >= min(self.channels, self.depth))

    @property
    def stack(self) -> int:
        """Taps that are copied at once, with zeros behind the last one: a power of two."""
        return 1 if self.stacked is None else 1 << (self.taps[self.stacked] - 1).bit_length()

    @property
    def lines(self) -> int:
        """Of a unit: what is copied at once."""
        return self.unit * self.stack

    @property
    def blocks(self) -> int:
        """Units of the channels."""
        return -(-self.channels // self.unit)

    @property
    def walked(self) -> tuple[int, ...]:
        """The taps but for those that are stacked."""
        return tuple(1 if axis == self.stacked else length for axis, length in enumerate(self.taps))

    @property
    def units(self) -> int:
        """Of a window."""
        return prod(self.walked) * self.blocks

    @property
    def per_step(self) -> int:
        """Units of a step along the depth."""
        return self.depth // self.lines

    @property
    def steps(self) -> int:
        """Tiles along the depth."""
        return -(-self.units // self.per_step)

    @property
    def cycles(self) -> float:
        """What a line of columns takes, about: products, or the thread that starts copies."""
        return self.steps * max(_STEP, COPY * self.per_step)

    def packed(self, kernel: Array) -> Array:
        """`[output channel, steps x units x stacked taps x channels]` of `[output channel, channel, *taps]`, filled up
        with zeros.
        """
        import numpy as np

        count, axis = kernel.shape[0], -1 if self.stacked is None else self.stacked
        taps = np.moveaxis(kernel[..., None] if self.stacked is None else kernel, 2 + axis if axis >= 0 else -1, -1)
        taps = taps.reshape(count, self.channels, -1, taps.shape[-1])
        units = arranged(taps, "n (b u) t s", "n t b s u", u=self.unit)
        lines = np.zeros((count, self.steps * self.per_step, self.stack, self.unit), kernel.dtype)
        lines[:, : self.units, : units.shape[3]] = units.reshape(count, self.units, *units.shape[3:])
        return lines.reshape(count, -1)
