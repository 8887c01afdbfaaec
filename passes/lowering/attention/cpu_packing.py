"""Keys and values of a head in a place where vectors lie side by side."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirt.dialects.kernel.core import StoreOp, YieldOp
from mlirt.dialects.kernel.tile import TileForEachOp
from mlirt.dialects.kernel.tile_loads import TileLoadOp, TileLoadTransposedOp
from mlirt.dialects.symbolic import ceil_div
from mlirt.passes.lowering.attention.cpu_code import CpuCode, Places


class CpuPacking(CpuCode):
    """The part of a kernel that copies keys and values to a worker's memory."""

    def pack_keys(self, batch: Sequence[SSAValue], places: Places) -> None:
        """Panels of keys, each `[depth, width]`: squares of `lanes` keys are transposed."""
        k, walk, shape = self.k, self.walks.key, self.shape
        base, step, depth = self.address(batch, walk), k.index(k.stride(walk.key)), self.op.depth
        squares, lanes = ceil_div(self.op.keys, shape.lanes), shape.lanes
        panel_size = self.size("panel_size", depth * shape.width)

        def square(number: SSAValue) -> None:
            key = self.named(k.mul(number, lanes), "key")
            panel = k.mul(k.div(key, shape.width), panel_size)
            to = self.named(k.add(k.add(places.keys, panel), k.rem(key, shape.width)), "to")
            start = self.named(k.add(base, k.mul(key, step)), "start")
            rows = self.named(k.sub(self.size("keys", self.op.keys), key), "rows")

            def part(at: SSAValue) -> None:
                left = self.named(k.sub(self.size("depth", depth), at), "left")
                tile = k.value(TileLoadTransposedOp(self.buffer(walk), k.add(start, at), step, lanes, rows, left))
                self._keep(
                    tile, places.memory, self.named(k.add(to, k.mul(at, shape.width)), "row_at"), shape.width, left
                )

            k.count(k.constant(0), self.size("depth", depth), lanes, "at", part)

        k.count(k.constant(0), self.size("squares", squares), 1, "square", square)

    def pack_values(self, batch: Sequence[SSAValue], places: Places) -> None:
        """Values as `[part, keys, width]`, the columns cut into parts of a tile's width."""
        k, walk, shape = self.k, self.walks.values, self.shape
        base, step = self.address(batch, walk), k.index(k.stride(walk.key))
        for part in range(self.columns // shape.width):
            start = k.add(base, part * shape.width)
            to = self.named(self.part_of_values(places.values, part), "to")

            def row(key: SSAValue, start: SSAValue = start, to: SSAValue = to) -> None:
                at = k.add(start, k.mul(key, step))
                tile = k.value(TileLoadOp(self.buffer(walk), at, k.constant(0), (1, shape.vectors, shape.lanes), None))
                self._keep(tile, places.memory, self.named(k.add(to, k.mul(key, shape.width)), "row_at"), 0, None)

            k.count(k.constant(0), self.size("keys", self.op.keys), 1, "key", row)

    def _keep(self, tile: SSAValue, memory: SSAValue, to: SSAValue, row_step: int, rows: SSAValue | None) -> None:
        k, each = self.k, TileForEachOp(tile, rows, None)
        element, row, vector, lane = each.body.block.args
        with k.inside(each.body.block):
            k.insert(StoreOp(element, memory, [to, row, vector, lane], [1, row_step, self.shape.lanes, 1]))
            k.insert(YieldOp(operands=[[]]))
        k.insert(each)
