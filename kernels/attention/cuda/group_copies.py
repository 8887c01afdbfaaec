"""How one thread lets the device copy tiles of queries, keys and values, and the barriers that count them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.kernel.simt import MAX_ALIGNMENT, SharedOp
from mlirt.dialects.kernel.tensor_copy import LoadBoxOp
from mlirt.dialects.kernel.transaction_barrier import (
    MbarrierExpectOp,
    MbarrierFenceOp,
    MbarrierInitOp,
    MbarrierWaitOp,
)
from mlirt.dialects.kernel.warpgroup import LINE
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import byte_width, element_of
from mlirt.kernels.attention.cuda.flash_tiles import Rows
from mlirt.kernels.attention.cuda.group_shape import GroupShape, lines
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.warpgroups.sources import MappedMemory
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.words import extent, place
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
    def of(k: KernelBuilder, rows: Rows, memory: MappedMemory, height: int, tall: int) -> Boxes:
        box = [1] * (len(memory.sizes) - 2) + [height, _ELEMENTS]
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

    def load(
        self,
        k: KernelBuilder,
        batch: Sequence[SSAValue],
        first: SSAValue,
        target: tuple[SSAValue, SSAValue | int],
        barrier: tuple[SSAValue, SSAValue],
    ) -> None:
        """Start to copy the tile whose first row is given, and announce its bytes."""
        memory, index = target
        entry = [at for at, step in zip(batch, self.rows.walk.batch, strict=True) if step != 0]
        k.insert(MbarrierExpectOp(*barrier, 2 * self.size))
        for down in range(self.tall):
            for along in range(self.wide):
                places = [*entry, k.add(first, down * self.height), k.constant(along * _ELEMENTS)]
                start = k.add(index, (down * self.wide + along) * self.box)
                k.insert(LoadBoxOp(self.map, places, memory, start, *barrier))


class GroupMemory:
    """The shared memory of a block, and its barriers: for the queries, and for keys and values of each stage."""

    def __init__(self, k: KernelBuilder, element: Attribute, shape: GroupShape, boxes: tuple[Boxes, Boxes, Boxes]):
        self.k, self.shape = k, shape
        self.query_boxes, self.key_boxes, self.value_boxes = boxes
        sizes = (boxes[0].size, shape.stages * boxes[1].size, shape.stages * boxes[2].size)
        self.queries, self.keys, self.values = (k.value(SharedOp(size, element, MAX_ALIGNMENT)) for size in sizes)
        self.queries_here = k.value(SharedOp(1, i64))
        self.keys_here, self.values_here, self.empty = (k.value(SharedOp(shape.stages, i64)) for _ in range(3))
        names = ("queries", "keys", "values", "queries_here", "keys_here", "values_here", "empty")
        for name in names:
            getattr(self, name).name_hint = name

    @kernel
    def initialise(self, thread: Value) -> None:
        """One thread makes the barriers; others may use them after a barrier."""
        k = self.k
        if thread == 0:
            k.insert(MbarrierInitOp(self.queries_here, place(0), 1))
            for stage in range(extent(self.shape.stages)):
                k.insert(MbarrierInitOp(self.keys_here, place(stage), 1))
                k.insert(MbarrierInitOp(self.values_here, place(stage), 1))
                k.insert(MbarrierInitOp(self.empty, place(stage), self.shape.groups))
            k.insert(MbarrierFenceOp())

    @kernel
    def fill(self, batch: Sequence[SSAValue], first_query: Value, count: Value) -> None:
        """Start all copies, each when its stage is empty."""
        k = self.k
        self.query_boxes.load(k, batch, first_query, (self.queries, 0), (self.queries_here, place(0)))
        for tile in range(count):
            stage, parity = self.pipeline_state(place(tile))
            k.insert(MbarrierWaitOp(self.empty, stage, place(1 - parity)))
            first = place(tile * self.shape.keys)
            keys_at, values_at = stage * self.key_boxes.size, stage * self.value_boxes.size
            self.key_boxes.load(k, batch, first, (self.keys, keys_at), (self.keys_here, stage))
            self.value_boxes.load(k, batch, first, (self.values, values_at), (self.values_here, stage))

    def pipeline_state(self, tile: SSAValue) -> tuple[Value, Value]:
        """The stage of a tile, and the parity of the phase in which it is used."""
        k, stages = self.k, self.shape.stages
        return k.rem(tile, stages), k.rem(k.div(tile, stages), 2)
