"""The kernels of a Winograd convolution.

A task is some patches of an image by some panels of channels. What it makes on the way stays in memory of its own,
small enough to stay near; where all tasks need the same patches, a kernel of its own transforms those before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from mlirt.dialects.kernel.core import StoreOp, YieldOp
from mlirt.dialects.kernel.tile import TileFillOp, TileForEachOp, TileTransformOp
from mlirt.dialects.kernel.tile_loads import TileLoadPatchOp
from mlirt.dialects.kernel.tile_products import TileMultiplyAddOp
from mlirt.dialects.kernel.worker import PrefetchOp, WorkerShareOp, WorkerSlotOp
from mlirt.passes.lowering.convolution.cpu_geometry import Geometry
from mlirt.passes.lowering.convolution.cpu_winograd_plan import Plan
from mlirt.passes.lowering.convolution.cpu_winograd_transforms import WINDOW
from mlirt.passes.lowering.convolution.tile_pooling import TilePooling
from mlirt.passes.lowering.placement import Packed
from mlirt.passes.lowering.register_tiles.tile_code import Span, TileCode

if TYPE_CHECKING:
    pass

_UNROLLED = 4
_ROW, _PIXEL = 2, 3


class WinogradKernel:
    """A kernel under construction. Tasks' own memory comes first, then the transformed input that they share."""

    def __init__(
        self, code: TileCode, geometry: Geometry, plan: Plan, memory: SSAValue, pooling: TilePooling | None = None
    ) -> None:
        self.code, self.k, self.geometry, self.plan, self.pooling = code, code.k, geometry, plan, pooling
        self.scheme, self.shape = plan.cut.scheme, plan.cut.shape
        self.memory = code.named(memory, "memory")
        self.across = code.size("across", plan.across)
        self.input_point = code.size("input_point", plan.input_point)
        self.input_block = code.size("input_block", plan.input_block)

    def write_transform(self) -> None:
        """for each block of channels of each image: transform its patches"""
        code, k, plan = self.code, self.k, self.plan
        share = k.insert(WorkerShareOp(code.size("tasks", plan.batch * plan.image.blocks_in)))
        blocks, zero = code.size("blocks_in", plan.image.blocks_in), k.constant(0)
        patches = code.size("patches", plan.patches)

        def task(number: SSAValue) -> None:
            batch = code.named(k.div(number, blocks), "n")
            block = code.named(k.rem(number, blocks), "block")
            self._transform_block(batch, block, zero, patches, self._shared(batch))

        code.count(share.first, share.last, 1, "task", task)
        k.finish(code.op)

    def write(self, packed: Packed) -> None:
        """for each task: transform its patches, unless it is done; multiply, point by point; transform back

        A worker uses the same memory for all of its tasks.
        """
        code, k, plan = self.code, self.k, self.plan
        self.weights = code.named(k.weights(packed, "transformed weights"), "w")
        self.output_point = code.size("output_point", plan.output_point)
        self.output_block = code.size("output_block", plan.output_block)
        tasks = code.size("tasks", plan.tasks)
        share = k.insert(WorkerShareOp(tasks))
        share.first.name_hint, share.last.name_hint = "first", "last"
        slot = code.named(k.value(WorkerSlotOp(tasks, code.size("slots", plan.slots))), "slot")
        sums = code.named(k.mul(slot, code.size("task_size", plan.task_size)), "sums_at")
        own = code.named(k.add(sums, k.mul(self.output_point, self.scheme.points)), "points_at")
        groups, pieces = code.size("groups", plan.cut.groups), code.size("pieces", plan.pieces)
        per_task = code.size("per_task", plan.cut.per_task)

        def task(number: SSAValue) -> None:
            group = code.named(k.rem(number, groups), "group")
            piece = code.named(k.div(number, groups), "piece")
            batch = code.named(k.div(piece, pieces), "n")
            start = code.named(k.mul(k.rem(piece, pieces), per_task), "start")
            left = k.sub(code.size("patches", plan.patches), start)
            count = code.named(k.min(left, per_task), "count")
            points = own
            if plan.cut.is_shared:
                points = code.named(k.add(self._shared(batch), k.mul(start, plan.image.lanes)), "points_at")
            else:
                is_new = k.value(arith.OrIOp(k.compare("eq", group, 0), k.compare("eq", number, share.first)))
                k.when(is_new, lambda: self._transform_input(batch, start, count, own))
            self._multiply(group, count, points, sums)
            self._transform_output(batch, group, start, count, sums)

        code.count(share.first, share.last, 1, "task", task)
        k.finish(code.op)

    def _shared(self, batch: SSAValue) -> SSAValue:
        """Where the transformed input of an image lies that is shared."""
        code, k, plan = self.code, self.k, self.plan
        start = code.size("shared_at", plan.slots * plan.task_size)
        return code.named(k.add(start, k.mul(batch, code.size("input_size", plan.input_size))), "image_points")

    def _place(self, start: SSAValue, patch: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The first row and pixel of the result of a patch."""
        code, k, size, (rows, pixels) = self.code, self.k, self.scheme.result, self.plan.dilation
        number, phase = code.named(k.add(start, patch), "number"), None
        if self.plan.phases > 1:
            per_phase = code.size("per_phase", self.plan.per_phase)
            phase, number = code.named(k.div(number, per_phase), "phase"), k.rem(number, per_phase)
        down = code.named(k.div(number, self.across), "down")
        row = code.named(k.mul(down, size * rows), "row")
        pixel = code.named(k.mul(k.sub(number, k.mul(down, self.across)), size * pixels), "pixel")
        if phase is None:
            return row, pixel
        return k.add(row, k.div(phase, pixels)), k.add(pixel, k.rem(phase, pixels))

    def _left(self, row: SSAValue, pixel: SSAValue, more: int) -> tuple[SSAValue, SSAValue] | None:
        """The rows and pixels of its phase from a place to the end of the result, and `more`; None where there are
        enough.
        """
        if self.plan.is_exact:
            return None
        code, k = self.code, self.k
        left = k.sub(code.size("rows", self.plan.rows), row), k.sub(code.size("pixels", self.plan.length), pixel)
        down, across = (
            count if step == 1 else k.div(k.add(count, step - 1), step)
            for count, step in zip(left, self.plan.dilation, strict=True)
        )
        return k.add(down, more), k.add(across, more)

    # --- there

    def _transform_input(self, batch: SSAValue, start: SSAValue, count: SSAValue, slot: SSAValue) -> None:
        """Patches `start`, .., `start + count - 1` of all blocks of channels, into memory from `slot` on."""
        code, zero = self.code, self.k.constant(0)
        blocks = code.size("blocks_in", self.plan.image.blocks_in)
        code.count(zero, blocks, 1, "block", lambda block: self._transform_block(batch, block, start, count, slot))

    def _transform_block(
        self, batch: SSAValue, block: SSAValue, start: SSAValue, count: SSAValue, slot: SSAValue
    ) -> None:
        code, k, steps, lanes = self.code, self.k, self.geometry.steps, self.plan.image.lanes
        size, (down, across) = self.scheme.patch, self.plan.dilation
        source = code.named(k.buffer(code.op.input, self.geometry.start), "x")
        image = k.mul(batch, code.size("x_batch", steps[0]))
        plane = code.named(k.add(image, k.mul(block, code.size("x_block", steps[1]))), "plane_at")
        row_step = code.size("x_row", steps[_ROW])
        target = code.named(k.add(slot, k.mul(block, self.input_block)), "block_at")

        def one(patch: SSAValue) -> None:
            row, pixel = self._place(start, patch)
            at = code.named(k.add(k.add(plane, k.mul(row, row_step)), k.mul(pixel, lanes)), "x_at")
            limits = self._left(row, pixel, WINDOW - 1)
            apart = k.mul(row_step, down), k.constant(lanes * across)
            load = TileLoadPatchOp(source, at, apart, (size, size, lanes), limits)
            patch_tile = code.named(k.value(load), "patch")
            points = code.named(k.value(TileTransformOp(patch_tile, self.scheme.input_matrix)), "points")
            to = code.named(k.add(target, k.mul(patch, lanes)), "to")
            self._keep(points, to, (k.mul(self.input_point, size), self.input_point))

        code.count(k.constant(0), count, 1, "patch", one)

    def _keep(self, tile: SSAValue, at: SSAValue, steps: tuple[SSAValue, SSAValue]) -> None:
        """Store element i, j of a tile at `at + i * row step + j * column step`."""
        k = self.k
        each = TileForEachOp(tile)
        element, row, column, lane = each.body.block.args
        with k.inside(each.body.block):
            k.insert(StoreOp(element, self.memory, [at, row, column, lane], [1, *steps, 1]))
            k.insert(YieldOp(operands=[[]]))
        k.insert(each)

    # --- products

    def _multiply(self, group: SSAValue, count: SSAValue, points_at: SSAValue, sums_at: SSAValue) -> None:
        """For each point: `sums[patch, k] = sum over c of points[patch, c] * weights[c, k]`."""
        code, k, plan = self.code, self.k, self.plan
        zero, one, lanes = k.constant(0), k.constant(1), k.constant(plan.image.lanes)
        width, size = self.shape.blocks * plan.image.lanes, code.size("panel_size", plan.panel_size)
        panels = code.size("panels_per_group", plan.cut.panels_per_group)
        first = code.named(k.mul(k.mul(group, self.scheme.points), panels), "first_panel")

        def tile(point: SSAValue, panel: SSAValue, patch: SSAValue) -> None:
            number = k.add(k.add(first, k.mul(point, panels)), panel)
            w_start = code.named(k.mul(number, size), "w_start")
            start = k.add(points_at, k.mul(point, self.input_point))
            start = code.named(k.add(start, k.mul(patch, plan.image.lanes)), "patch_at")
            ahead = self._ahead(patch, size)
            fill = TileFillOp(k.constant(0.0, f32), self.shape.pixels, self.shape.blocks, plan.image.lanes)

            def block(number: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
                at = code.named(k.add(start, k.mul(number, self.input_block)), "block_at")
                return code.carry(zero, lanes, _UNROLLED, "c", state, lambda c, inner: step(k.add(at, c), inner))

            def step(at: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
                sums, w_at = state
                for line in ahead:
                    k.insert(PrefetchOp(self.weights, k.add(w_at, line)))
                added = TileMultiplyAddOp(sums, self.memory, at, lanes, one, self.weights, w_at, _UNROLLED)
                return [code.named(k.value(added), "added"), k.add(w_at, _UNROLLED * width)]

            state = [code.named(k.value(fill), "sums"), w_start]
            sums = code.carry(zero, code.size("blocks_in", plan.image.blocks_in), 1, "block", state, block)[0]
            to = k.add(sums_at, k.mul(point, self.output_point))
            to = k.add(to, k.mul(k.mul(panel, self.shape.blocks), self.output_block))
            self._keep(sums, code.named(k.add(to, k.mul(patch, plan.image.lanes)), "to"), (lanes, self.output_block))

        def patches(point: SSAValue, panel: SSAValue) -> None:
            code.count(zero, count, self.shape.pixels, "patch", lambda patch: tile(point, panel, patch))

        points = k.constant(self.scheme.points)
        code.count(zero, points, 1, "point", lambda p: code.count(zero, panels, 1, "panel", lambda q: patches(p, q)))

    def _ahead(self, patch: SSAValue, panel_size: SSAValue) -> list[SSAValue]:
        """How far ahead the lines of the next panel lie that a tile asks for: its part of those that a step reads."""
        code, k, lanes = self.code, self.k, self.plan.image.lanes
        lines, tiles = _UNROLLED * self.shape.blocks, self.plan.cut.per_task // self.shape.pixels
        each = -(-lines // tiles)
        number = k.mul(k.div(patch, self.shape.pixels), each * lanes)
        first = code.named(k.add(panel_size, number), "ahead")
        return [k.add(first, line * lanes) for line in range(each)]

    # --- and back

    def _transform_output(
        self, batch: SSAValue, group: SSAValue, start: SSAValue, count: SSAValue, sums_at: SSAValue
    ) -> None:
        code, k, lanes, size = self.code, self.k, self.plan.image.lanes, self.scheme.patch
        steps = (k.mul(self.output_point, size), self.output_point)
        per_group = code.size("blocks_per_group", self.plan.blocks_per_group)
        first = code.named(k.mul(group, per_group), "first_block")

        def one(block: SSAValue, patch: SSAValue) -> None:
            row, pixel = self._place(start, patch)
            at = code.named(k.add(k.add(sums_at, k.mul(block, self.output_block)), k.mul(patch, lanes)), "at")
            load = TileLoadPatchOp(self.memory, at, steps, (size, size, lanes))
            sums = code.named(k.value(load), "sums")
            result = code.named(k.value(TileTransformOp(sums, self.scheme.output_matrix)), "result")
            to = Span(k.add(first, block))
            rows, pixels = self.plan.dilation
            spans = [Span(batch), to, Span(row, row=rows), Span(pixel, column=pixels), Span(k.constant(0), lane=1)]
            left = self._left(row, pixel, 0)
            if self.pooling is not None:
                self._store_pooled(self.pooling, result, spans, left)
                return
            down, across = (None, None) if left is None else left
            valid = None if across is None else code.named(k.mul(across, lanes), "valid")
            code.finish(result, spans, None if down is None else code.named(down, "rows_left"), valid)

        blocks = k.min(k.sub(code.size("blocks_out", self.plan.image.blocks_out), first), per_group)
        zero = k.constant(0)
        code.count(zero, blocks, 1, "block", lambda b: code.count(zero, count, 1, "patch", lambda p: one(b, p)))

    def _store_pooled(
        self, pooling: TilePooling, result: SSAValue, spans: list[Span], left: tuple[SSAValue, SSAValue] | None
    ) -> None:
        """Put a patch that lies at `spans` through the epilogue and store its windows, of which whole ones are left."""
        code, k, size = self.code, self.k, self.scheme.result
        values = code.through_epilogue(result, spans, None)
        windows = pooling.start(code, size // pooling.rows, size // pooling.columns)
        pooled = pooling.combine(code, values, windows)
        batch, block, rows, pixels, lane = spans
        row, pixel = k.div(rows.start, pooling.rows), k.div(pixels.start, pooling.columns)
        down = across = None
        if left is not None:
            down = code.named(k.div(left[0], pooling.rows), "rows_left")
            across = code.named(k.mul(k.div(left[1], pooling.columns), self.plan.image.lanes), "valid")
        at = [batch, block, Span(row, row=rows.row), Span(pixel, column=pixels.column), lane]
        code.finish(pooled, at, down, across, pooling.factor(code), is_final=True)
