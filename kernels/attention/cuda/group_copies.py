"""How one thread lets the device copy tiles of queries, keys and values, and the barriers that count them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.kernel.simt import MAX_ALIGNMENT
from mlirt.dialects.kernel.warpgroup import LINE
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import byte_width, element_of
from mlirt.kernels.attention.cuda.flash_softmax import Range
from mlirt.kernels.attention.cuda.flash_tiles import Rows
from mlirt.kernels.attention.cuda.group_shape import GroupShape, lines
from mlirt.kernels.lib.cuda.warpgroups.sources import MappedMemory
from mlirt.kernels.lib.language import Index, Value, builder, kernel, value_of
from mlirt.kernels.lib.language.hopper_words import Barrier, SharedTile, fence_mbarriers, mbarriers, tma_load
from mlirt.kernels.lib.language.simt_words import shared_memory
from mlirt.kernels.lib.language.words import extent, place, static_range
from mlirt.kernels.lib.tactics.lowering import Lowering

_ELEMENTS = 64  # of a line


def mapped(rows: Rows, batch: Sequence[Dim], lowering: Lowering) -> MappedMemory:
    """An operand as a tensor `[b.., row, element]`, without the batch dimensions that it is shared along."""
    walk, place = rows.walk, lowering.placements[rows.walk.value]
    element = element_of(walk.value.type)
    moves = [axis for axis, step in enumerate(walk.batch) if step != 0]
    sizes = (*(batch[axis] for axis in moves), rows.count, rows.width)
    steps = (*(walk.batch[axis] for axis in moves), rows.step, 1)
    return MappedMemory(place.buffer, element, place.offset + walk.offset * byte_width(element), sizes, steps)


@dataclass(frozen=True)
class Boxes:
    """An operand whose rows come in boxes of `height` rows of one line; a tile has `tall` times `wide` of them.

    Boxes of neighbouring lines lie one after the other, then those of the next rows.
    """

    rows: Rows
    map: SSAValue
    height: int
    tall: int
    wide: int

    @staticmethod
    def of(rows: Rows, memory: MappedMemory, height: int, tall: int) -> Boxes:
        k, box = builder(), [1] * (len(memory.sizes) - 2) + [height, _ELEMENTS]
        map_ = rows.walk.named(k, memory.operand_map(k, box, LINE))
        return Boxes(rows, map_, height, tall, lines(rows.width) // _ELEMENTS)

    @property
    def box(self) -> int:
        """Elements of a box."""
        return self.height * _ELEMENTS

    @property
    def size(self) -> int:
        """Elements of a tile."""
        return self.box * self.tall * self.wide

    @kernel
    def load(self, batch: Sequence[SSAValue], first: Value, target: SharedTile, barrier: Barrier) -> None:
        """Start to copy the tile whose first row is given, and announce its bytes."""
        entry = [value_of(at) for at, step in zip(batch, self.rows.walk.batch, strict=True) if step != 0]
        barrier.expect(2 * self.size)
        for down in static_range(self.tall):
            for along in static_range(self.wide):
                origin = [*entry, first + down * self.height, along * _ELEMENTS]
                number = down * self.wide + along
                tma_load(self.map, origin, SharedTile(target.memory, target.index + number * self.box), barrier)


@dataclass(frozen=True)
class Work:
    """A tile of queries and their tiles of keys; `number` counts those of a persistent block."""

    batch: Sequence[Value]
    first_query: Value
    tiles: Range
    number: Index | None = None


class GroupMemory:
    """The shared memory of a block, and its barriers: for the queries, and for keys and values of each stage."""

    def __init__(self, element: Attribute, shape: GroupShape, boxes: tuple[Boxes, Boxes, Boxes]) -> None:
        self.shape, stages = shape, shape.stages
        self.query_boxes, self.key_boxes, self.value_boxes = boxes
        self.queries = shared_memory("queries", self.query_boxes.size, element, MAX_ALIGNMENT)
        self.keys = shared_memory("keys", stages * self.key_boxes.size, element, MAX_ALIGNMENT)
        self.values = shared_memory("values", stages * self.value_boxes.size, element, MAX_ALIGNMENT)
        self.queries_here, self.keys_here = mbarriers("queries_here", 1), mbarriers("keys_here", stages)
        self.values_here, self.empty = mbarriers("values_here", stages), mbarriers("empty", stages)
        self.order = mbarriers("order", shape.groups) if shape.takes_turns else None
        self.keys_read = mbarriers("keys_read", stages) if shape.frees_keys else None
        self.queries_read = mbarriers("queries_read", 1) if shape.stays else None

    @kernel
    def initialise(self, thread: Value) -> None:
        """One thread makes the barriers; others may use them after a barrier."""
        if thread == 0:
            self.queries_here[0].init(1)
            for stage in range(extent(self.shape.stages)):
                self.keys_here[stage].init(1)
                self.values_here[stage].init(1)
                self.empty[stage].init(self.shape.groups)
                if self.keys_read is not None:
                    self.keys_read[stage].init(self.shape.groups)
            if self.queries_read is not None:
                self.queries_read[0].init(self.shape.groups)
            if self.order is not None:
                for group in range(extent(self.shape.groups)):
                    self.order[group].init(1)
            fence_mbarriers()

    @kernel
    def fill(self, work: Work, done: Index | None = None) -> None:
        """Start all copies, each when its stage is empty; so many tiles of keys were `done` before."""
        batch = work.batch
        if self.queries_read is not None and work.number is not None:
            self.queries_read[0].wait((work.number + 1) % 2)
        self.query_boxes.load(batch, work.first_query, SharedTile(self.queries, 0), self.queries_here[0])
        for tile in range(work.tiles.count):
            stage, parity = self.pipeline_state(place(tile), done)
            before_keys = self.empty if self.keys_read is None else self.keys_read
            before_keys[stage].wait(1 - parity)
            first = place(tile * self.shape.keys)
            keys_at, values_at = stage * self.key_boxes.size, stage * self.value_boxes.size
            self.key_boxes.load(batch, first, SharedTile(self.keys, keys_at), self.keys_here[stage])
            if self.keys_read is not None:
                self.empty[stage].wait(1 - parity)
            self.value_boxes.load(batch, first, SharedTile(self.values, values_at), self.values_here[stage])

    @kernel
    def pipeline_state(self, tile: Value, done: Index | None = None) -> tuple[Value, Value]:
        """The stage of a tile, and the parity of the phase in which it is used."""
        stages, number = self.shape.stages, tile if done is None else tile + done
        return number % stages, number // stages % 2
