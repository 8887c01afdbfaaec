"""An extra operand that the device copies to shared memory ahead, in the same tiles as the results that need it.

A tile has a slot of shared memory, in turn. Pieces of 64 bytes of all its rows lie one behind the other: what the four
threads of a row need of a group of columns, so that the 32 threads of a warp read neighbouring places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from mlirt.dialects.kernel.fragment import LoadFragmentOp
from mlirt.dialects.kernel.simt import SharedOp
from mlirt.dialects.kernel.tensor_copy import BOX_ALIGNMENT, LoadBoxOp
from mlirt.dialects.kernel.transaction_barrier import (
    MbarrierArriveOp,
    MbarrierExpectOp,
    MbarrierInitOp,
    MbarrierWaitOp,
)
from mlirt.dialects.kernel.warpgroup import ROWS, WARPGROUP
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import Work
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.sources import MappedMemory

QUAD = 4
"""Threads that share a row."""


@dataclass(frozen=True)
class SlotUse:
    """The slot of a tile, and the parity of the phase in which it holds the tile's part of the operand."""

    slot: SSAValue
    parity: SSAValue


class ExtraTiles:
    """The slots of the extra operand of a number, of which a thread reads `width` neighbouring columns at once."""

    def __init__(self, k: KernelBuilder, tile: GroupTile, memory: MappedMemory, number: int, width: int) -> None:
        self.k, self.tile, self.number, self.width = k, tile, number, width
        self.box = tile.rows * QUAD * width
        self.boxes = range(tile.columns // (QUAD * width))
        self.size = self.box * len(self.boxes)
        self.bytes = self.size * byte_width(memory.element)
        place = (memory.buffer, memory.element, memory.offset, memory.sizes, memory.steps)
        self.map = k.tensor_map(*place, [tile.rows, QUAD * width], 0)
        self.memory = k.value(SharedOp(tile.slots * self.size, memory.element, BOX_ALIGNMENT))
        self.full, self.empty = (k.value(SharedOp(tile.slots, i64)) for _ in range(2))
        names = ((self.memory, "slots"), (self.full, "slot_full"), (self.empty, "slot_empty"))
        for value, name in names:
            value.name_hint = name

    def initialise(self) -> None:
        """Make the barriers, in one thread."""
        for slot in map(self.k.constant, range(self.tile.slots)):
            self.k.insert(MbarrierInitOp(self.full, slot, 1))
            self.k.insert(MbarrierInitOp(self.empty, slot, WARPGROUP * self.tile.readers))

    def use(self, tile: SSAValue | int) -> SlotUse:
        """What the `tile`-th tile of a block has."""
        k, slots = self.k, self.tile.slots
        return SlotUse(k.rem(tile, slots), k.rem(k.div(tile, slots), 2))

    def load(self, tile: SSAValue | int, work: Work) -> None:
        """Start to copy what the `tile`-th tile needs, when its slot is empty."""
        k, use = self.k, self.use(tile)
        k.insert(MbarrierWaitOp(self.empty, use.slot, k.sub(k.constant(1), use.parity)))
        k.insert(MbarrierExpectOp(self.full, use.slot, self.bytes))
        start = k.mul(use.slot, self.size)
        for box in self.boxes:
            at = [work.row, k.add(work.column, box * QUAD * self.width)]
            target = k.add(start, box * self.box)
            k.insert(LoadBoxOp(self.map, at, self.memory, target, self.full, use.slot))

    def place(self, use: SlotUse, group: SSAValue, thread: SSAValue) -> SSAValue:
        """Where a thread of a warpgroup finds the first columns of its upper row."""
        k = self.k
        lane, warp = k.rem(thread, 32), k.rem(k.div(thread, 32), 4)
        row = k.add(k.mul(group, ROWS), k.add(k.mul(warp, 16), k.div(lane, QUAD)))
        within = k.add(k.mul(row, QUAD * self.width), k.mul(k.rem(lane, QUAD), self.width))
        return k.add(k.mul(use.slot, self.size), within)

    def wait(self, use: SlotUse) -> None:
        """Until the tile's part of the operand is there."""
        self.k.insert(MbarrierWaitOp(self.full, use.slot, use.parity))

    def read(self, place: SSAValue, half: int, columns: Sequence[int]) -> SSAValue:
        """The elements of a thread's upper or lower row, by the number among its own columns."""
        width = self.width
        offsets = [8 * half * QUAD * width + self.box * (column // width) + column % width for column in columns]
        return self.k.value(LoadFragmentOp(self.memory, place, offsets, wide=True))

    def give_back(self, use: SlotUse) -> None:
        """Each thread tells that it has read what it needs."""
        self.k.insert(MbarrierArriveOp(self.empty, use.slot))
