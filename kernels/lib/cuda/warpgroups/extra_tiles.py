"""An extra operand that the device copies to shared memory ahead, in the same tiles as the results that need it.

A tile has a slot of shared memory, in turn. Pieces of 64 bytes of all its rows lie one behind the other: what the four
threads of a row need of a group of columns, so that the 32 threads of a warp read neighbouring places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute

from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.kernel.tensor_copy import BOX_ALIGNMENT
from mlirt.dialects.kernel.warpgroup import ROWS, WARPGROUP
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import Work
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.sources import MappedMemory
from mlirt.kernels.lib.language import Index, Value, build, kernel
from mlirt.kernels.lib.language.hopper_words import SharedTile, mbarriers, tma_load
from mlirt.kernels.lib.language.simt_words import Access, load_fragment, shared_memory
from mlirt.kernels.lib.language.words import place, static_range

QUAD = 4
"""Threads that share a row."""


@dataclass(frozen=True)
class SlotUse:
    """The slot of a tile, and the parity of the phase in which it holds the tile's part of the operand."""

    slot: Value
    parity: Value


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
        build(k, self._allocate, memory.element)

    def _allocate(self, element: Attribute) -> None:
        slots = self.tile.slots
        self.memory = shared_memory("slots", slots * self.size, element, BOX_ALIGNMENT)
        self.full, self.empty = mbarriers("slot_full", slots), mbarriers("slot_empty", slots)

    @kernel
    def initialise(self) -> None:
        """Make the barriers, in one thread."""
        for slot in static_range(self.tile.slots):
            self.full[slot].init(1)
            self.empty[slot].init(WARPGROUP * self.tile.readers)

    @kernel
    def use(self, tile: Index) -> SlotUse:
        """What the `tile`-th tile of a block has."""
        slots = self.tile.slots
        return SlotUse(place(tile % slots), place(tile // slots % 2))

    @kernel
    def load(self, tile: Index, work: Work) -> None:
        """Start to copy what the `tile`-th tile needs, when its slot is empty."""
        use = self.use(tile)
        full = self.full[use.slot]
        self.empty[use.slot].wait(1 - use.parity)
        full.expect(self.bytes)
        start = use.slot * self.size
        for box in self.boxes:
            at = [work.row, work.column + box * QUAD * self.width]
            tma_load(self.map, at, SharedTile(self.memory, start + box * self.box), full)

    @kernel
    def place(self, use: SlotUse, group: Value, thread: Value) -> Value:
        """Where a thread of a warpgroup finds the first columns of its upper row."""
        lane, warp = thread % WARP, thread // WARP % 4
        row = group * ROWS + (warp * 16 + lane // QUAD)
        return use.slot * self.size + (row * (QUAD * self.width) + lane % QUAD * self.width)

    def wait(self, use: SlotUse) -> None:
        """Until the tile's part of the operand is there."""
        self.full[use.slot].wait(use.parity)

    def read(self, place: Value, half: int, columns: Sequence[int]) -> Value:
        """The elements of a thread's upper or lower row, by the number among its own columns."""
        width = self.width
        offsets = [8 * half * QUAD * width + self.box * (column // width) + column % width for column in columns]
        return load_fragment(self.memory, place, Access(offsets, wide=True))

    def give_back(self, use: SlotUse) -> None:
        """Each thread tells that it has read what it needs."""
        self.empty[use.slot].arrive()
