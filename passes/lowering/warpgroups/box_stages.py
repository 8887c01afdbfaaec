"""Shared memory of a convolution on boxes of pixels: their stages, the weights, the barriers, how it is filled."""

from __future__ import annotations

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from mlirt.dialects.kernel.simt import LARGEST_ALIGNMENT, SharedOp, ThreadIdOp
from mlirt.dialects.kernel.tensor_copy import LoadBoxOp
from mlirt.dialects.kernel.transaction_barrier import (
    MbarrierArriveOp,
    MbarrierExpectOp,
    MbarrierFenceOp,
    MbarrierInitOp,
    MbarrierWaitOp,
)
from mlirt.dialects.kernel.warpgroup import (
    ROWS,
)
from mlirt.dialects.tensor_types import byte_width
from mlirt.passes.lowering.kernel_builder import KernelBuilder
from mlirt.passes.lowering.warpgroups.box_rows import BoxRows
from mlirt.passes.lowering.warpgroups.box_tile import BoxTile
from mlirt.passes.lowering.warpgroups.group_sizes import GroupSizes, Work
from mlirt.passes.lowering.warpgroups.kinds import Kind
from mlirt.passes.lowering.warpgroups.row_epilogue import RowEpilogue
from mlirt.passes.lowering.warpgroups.sources import MatrixSource
from mlirt.passes.lowering.warpgroups.tile_results import TileResults


class BoxStages:
    """One kernel's. `maps` are those of the input, one for each box; a slab is a line of channels."""

    def __init__(
        self,
        k: KernelBuilder,
        tile: BoxTile,
        rows: BoxRows,
        columns: int,
        slabs: int,
        kind: Kind,
        operands: tuple[list[SSAValue], MatrixSource],
        epilogue: RowEpilogue,
    ) -> None:
        self.k, self.tile, self.rows, self.slabs, self.kind = k, tile, rows, slabs, kind
        self.boxes = rows.boxes
        self.maps, self.weights = operands
        self.across = -(-columns // tile.columns)
        sizes = GroupSizes(rows.pixels, columns, (), slabs)
        self.results = TileResults(
            k, tile.sums, sizes, epilogue, in_fragment_order=self.weights.in_fragment_order, places=rows
        )
        self.thread = k.value(ThreadIdOp())
        self.thread.name_hint = "thread"
        self.steps = slabs * len(self.boxes.taps)
        self.line = kind.line // byte_width(kind.element)
        self.slab, self.step = self.boxes.lines * self.line, tile.columns * self.line
        self.memory = k.value(SharedOp(tile.groups * tile.stages * self.slab, kind.element, LARGEST_ALIGNMENT))
        self.known = k.value(SharedOp(self.steps * self.step, kind.element, LARGEST_ALIGNMENT))
        self.full, self.empty = (k.value(SharedOp(tile.groups * tile.stages, i64)) for _ in range(2))
        self.ready = k.value(SharedOp(1, i64))
        if tile.ping_pong:
            self.order = k.value(SharedOp(tile.groups, i64))
            self.order.name_hint = "order"
        named = {"boxes": self.memory, "weights": self.known, "full": self.full, "empty": self.empty}
        for name, value in {**named, "ready": self.ready}.items():
            value.name_hint = name

    def _share(self, block: SSAValue, blocks: SSAValue) -> None:
        """What a block does: its columns, its first turn and how many it has; so many blocks have the same columns."""
        k, alone = self.k, self.across == 1
        self.column = k.constant(0) if alone else k.mul(k.div(block, blocks), self.tile.columns)
        self.first, self.blocks = block if alone else k.rem(block, blocks), blocks
        self.count = k.named(k.ceil_div(k.sub(k.size(self.rows.tiles), self.first), blocks), "count")

    def _initialise(self) -> None:
        """One thread makes the barriers."""
        k, tile = self.k, self.tile

        def make(stage: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            k.insert(MbarrierInitOp(self.full, stage, 1))
            k.insert(MbarrierInitOp(self.empty, stage, 1))
            return []

        def all_() -> None:
            k.loop(tile.groups * tile.stages, [], make, ["stage"])
            k.insert(MbarrierInitOp(self.ready, k.constant(0), 1))
            for group in range(tile.groups if tile.ping_pong else 0):
                k.insert(MbarrierInitOp(self.order, k.constant(group), 1))
            self.results.initialise()
            k.insert(MbarrierFenceOp())

        k.when(k.compare("eq", self.thread, 0), all_)

    def _number(self, turn: SSAValue) -> SSAValue:
        """The tile of a block's turn."""
        return self.k.named(self.k.add(self.first, self.k.mul(turn, self.blocks)), "tile")

    def _place(self, group: SSAValue, own: SSAValue, number: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The stage of a warpgroup's own tile's slabs, and the parity of that phase."""
        k, stages = self.k, self.tile.stages
        used = k.named(k.add(k.mul(own, self.slabs), number), "used")
        stage = k.named(k.add(k.mul(group, stages), k.rem(used, stages)), "stage")
        return stage, k.named(k.rem(k.div(used, stages), 2), "parity")

    def _turn(self, group: SSAValue, own: SSAValue) -> SSAValue:
        """The number of a warpgroup's own tile among all of a block."""
        return self.k.named(self.k.add(self.k.mul(own, self.tile.groups), group), "turn")

    def _fill(self, group: SSAValue, own: SSAValue) -> None:
        """Start to copy all that a warpgroup needs for a tile of its own."""
        k = self.k
        turn = self._turn(group, own)
        number = self._number(turn)
        image, *corner = self.rows.corner(number)

        def slab(i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            stage, parity = self._place(group, own, i)
            k.insert(MbarrierWaitOp(self.empty, stage, k.sub(k.constant(1), parity)))
            k.insert(MbarrierExpectOp(self.full, stage, self.boxes.copied * self.kind.line))
            self._load(image, corner, i, k.mul(stage, self.slab), stage)
            return []

        k.loop(self.slabs, [], slab, ["slab"])
        self.results.copy_ahead(turn, Work(k.mul(number, ROWS), self.column, k.constant(0)))

    def _load(self, image: SSAValue, corner: list[SSAValue], slab: SSAValue, start: SSAValue, stage: SSAValue) -> None:
        """Start to copy a tile's boxes of some channels."""
        k = self.k
        for box, map_ in zip(self.boxes.boxes, self.maps, strict=True):
            places = [image, *(k.add(at, one.first) for at, one in zip(corner, (box.down, box.across), strict=True))]
            target = k.add(start, box.start * self.line)
            channel = k.mul(slab, self.line)
            k.insert(LoadBoxOp(map_, [*places, channel], self.memory, target, self.full, stage))

    def _arrive(self, condition: SSAValue, barriers: SSAValue, number: SSAValue) -> None:
        """One thread tells a barrier."""

        def arrive() -> None:
            self.k.insert(MbarrierArriveOp(barriers, number))

        self.k.when(condition, arrive)
