"""Pixels of planes as columns of a product: lines of 64 neighbours in memory, from which TMA copies by channels.

A tile of the right operand has a line of pixels for each channel, as the planes of an image lie. Positions are counted
along the trailing dimensions of the input, as far as these are one piece of memory and no window steps over pixels or
leaves them sideways; where the result is narrower, positions between its rows are computed and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from mlirt.dialects.kernel.tensor_copy import LoadBoxOp
from mlirt.dialects.kernel.warpgroup import LINE
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.warpgroups.plane_walk import GROUP, PlaneWalk
from mlirt.kernels.lib.cuda.warpgroups.sources import MappedMemory, Slot, Source
from mlirt.kernels.lib.language.simt_words import count_where
from mlirt.kernels.lib.language.values import Index, Value, value_of


class PlaneSource(Source):
    """The pixels of planes as columns: for each unit of a step a box of some channels and a line of pixels."""

    by_depth = True
    is_constant = False

    def __init__(self, k: KernelBuilder, memory: MappedMemory, own: int, walk: PlaneWalk) -> None:
        """`memory` has the sizes image, dimensions in front, stacked taps if there are any, channels, positions."""
        self.own, self.walk = own, walk
        self.depth = LINE // byte_width(memory.element)
        stacked = [] if walk.stacked is None else [walk.stack]
        box = [*[1] * (1 + walk.lead), *stacked, walk.unit, self.depth]
        self.map = memory.operand_map(k, box, LINE)
        self.map.name_hint = "planes"

    def start_tile(self, k: KernelBuilder, first: SSAValue, batch: Sequence[SSAValue]) -> None:
        self.image = batch[0]
        self.pieces = [self._start(k, k.add(first, piece * self.depth)) for piece in range(self.own // self.depth)]

    def _start(self, k: KernelBuilder, column: SSAValue) -> list[SSAValue]:
        """Where the first tap of a line is: along the dimensions in front, and the position."""
        walk = self.walk
        row, at = _row(k, walk, column)
        places: list[SSAValue] = []
        for axis in reversed(range(walk.lead)):
            stride, _, pre, _ = walk.spatial[axis]
            own = k.rem(row, walk.made[axis]) if axis else row
            row = k.div(row, walk.made[axis]) if axis else row
            places.insert(0, k.sub(k.mul(own, stride), pre))
        before, pitch = 0, 1
        for size, (_, _, pre, _) in zip(reversed(walk.sizes), reversed(walk.spatial[-walk.flat :]), strict=False):
            before += pre * pitch
            pitch *= size
        return [*places, k.sub(at, before)]

    def load(self, k: KernelBuilder, step: SSAValue | int, slot: Slot) -> None:
        walk = self.walk
        for number in range(walk.per_step):
            unit = k.add(k.mul(step, walk.per_step), number)
            tap, block = k.div(unit, walk.blocks), k.rem(unit, walk.blocks)
            channel = k.mul(block, walk.unit)
            if walk.units % walk.per_step:  # behind the last unit: channels that do not exist, which become zero
                channel = k.add(channel, k.mul(k.div(tap, prod(walk.walked)), walk.channels))
            moves, stacked = self._moves(k, tap), [] if walk.stacked is None else [k.index(0)]
            for piece, start in enumerate(self.pieces):
                *lead, at = [k.add(one, move) for one, move in zip(start, moves, strict=True)]
                places = [self.image, *lead, *stacked, channel, at]
                index = k.add(slot.index, (piece * self.depth + number * walk.lines) * self.depth)
                k.insert(LoadBoxOp(self.map, places, slot.tiles, index, slot.barriers, slot.barrier))

    def _moves(self, k: KernelBuilder, tap: SSAValue) -> list[SSAValue]:
        """How far a tap lies from the first one."""
        walk, along, pitch = self.walk, k.index(0), 1
        places: list[SSAValue] = []
        for axis in reversed(range(len(walk.taps))):
            own = k.mul(k.rem(tap, walk.walked[axis]), walk.spatial[axis][1])
            tap = k.div(tap, walk.walked[axis])
            if axis < walk.lead:
                places.insert(0, own)
            else:
                along = k.add(along, k.mul(own, pitch))
                pitch *= walk.sizes[axis]
        return [*places, along]


@dataclass(frozen=True)
class PlaneColumns:
    """Which columns of the result those of a tile are."""

    k: KernelBuilder
    walk: PlaneWalk

    @property
    def run(self) -> int:
        """Neighbouring columns of the result: groups begin at multiples of it and of their width."""
        return self.walk.rows[-1][0]

    def place(self, column: SSAValue) -> tuple[Value, Index | None]:
        """The column of the result for the first of a group of columns, and how many of them exist."""
        k, walk = self.k, self.walk
        row, at = _row(k, walk, column)
        exists: SSAValue | bool | None = None
        if walk.count > 1:
            exists = k.compare("slt", row, walk.count)
        found, left = row, at
        for number, (length, step) in enumerate(walk.rows):
            own, left = (k.div(left, step), k.rem(left, step)) if step > 1 else (left, left)
            found = k.add(k.mul(found, length), own)
            if number < len(walk.rows) - 1:
                exists = k.both(exists, k.compare("slt", own, length))
            else:
                left = own
        valid = k.max(k.min(k.sub(walk.rows[-1][0], left), GROUP), 0)
        return value_of(found), valid if exists is None else count_where(exists, valid)


def _row(k: KernelBuilder, walk: PlaneWalk, column: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The row of a column, and the position in it."""
    if walk.count == 1:
        return k.index(0), column
    return k.div(column, walk.pitch), k.rem(column, walk.pitch)


__all__ = ["PlaneColumns", "PlaneSource"]
