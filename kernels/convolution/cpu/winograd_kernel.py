"""The kernels of a Winograd convolution.

A task is some patches of an image by some panels of channels. What it makes on the way stays in memory of its own,
small enough to stay near; where all tasks need the same patches, a kernel of its own transforms those before.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirt.kernels.convolution.cpu.geometry import Geometry
from mlirt.kernels.convolution.cpu.tile_pooling import TilePooling
from mlirt.kernels.convolution.cpu.winograd_plan import Plan
from mlirt.kernels.convolution.cpu.winograd_transforms import WINDOW
from mlirt.kernels.lib.builder.placement import Packed
from mlirt.kernels.lib.cpu.register_tiles.tile_code import Span, TileCode
from mlirt.kernels.lib.language import Index, Value, build, kernel, value_of
from mlirt.kernels.lib.language.tile_words import (
    elements,
    fill,
    load_patch,
    multiply_add,
    prefetch,
    share,
    slot,
    transform,
)
from mlirt.kernels.lib.language.words import place, size, strided

_UNROLLED = 4
_ROW = 2


class WinogradKernel:
    """A kernel under construction. Tasks' own memory comes first, then the transformed input that they share."""

    def __init__(
        self, code: TileCode, geometry: Geometry, plan: Plan, memory: SSAValue, pooling: TilePooling | None = None
    ) -> None:
        self.code, self.k, self.geometry, self.plan, self.pooling = code, code.k, geometry, plan, pooling
        self.scheme, self.shape, self.lanes = plan.cut.scheme, plan.cut.shape, plan.image.lanes
        self.memory = code.k.named(memory, "memory", keep=True)
        names = ("across", "input_point", "input_block")
        self.across, self.input_point, self.input_block = (
            value_of(code.k.named_size(name, getattr(plan, name))) for name in names
        )

    def write_transform(self) -> None:
        """The kernel that transforms the patches of each block of channels of each image."""
        build(self.k, self._transform_all)
        self.k.finish(self.code.op)

    def write(self, packed: Packed) -> None:
        """The kernel of what is left: for each task transform its patches, unless it is done, multiply, and back."""
        weights = self.k.named(self.k.weights(packed, "transformed weights"), "w", keep=True)
        build(self.k, self._tasks, weights)
        self.k.finish(self.code.op)

    @kernel
    def _transform_all(self) -> None:
        plan = self.plan
        first, last = share(size("tasks", plan.batch * plan.image.blocks_in))
        blocks, patches = size("blocks_in", plan.image.blocks_in), size("patches", plan.patches)
        for task in range(first, last):
            n = task // blocks
            block = task % blocks
            self._transform_block(n, block, 0, patches, self._shared(n))

    @kernel
    def _tasks(self, w: Value) -> None:
        """A worker uses the same memory for all of its tasks."""
        plan = self.plan
        output = size("output_point", plan.output_point), size("output_block", plan.output_block)
        tasks = size("tasks", plan.tasks)
        first, last = share(tasks)
        place = slot(tasks, size("slots", plan.slots))
        accumulators_at = place * size("task_size", plan.task_size)
        own = accumulators_at + output[0] * self.scheme.points
        groups, pieces = size("groups", plan.cut.groups), size("pieces", plan.pieces)
        per_task = size("per_task", plan.cut.per_task)
        for task in range(first, last):
            group = task % groups
            piece = task // groups
            n = piece // pieces
            start = piece % pieces * per_task
            count = min(size("patches", plan.patches) - start, per_task)
            points_at = own
            if plan.cut.is_shared:
                points_at = self._shared(n) + start * self.lanes
            elif (group == 0) | (task == first):
                for block in range(size("blocks_in", plan.image.blocks_in)):
                    self._transform_block(n, block, start, count, own)
            self._multiply(group, count, points_at, accumulators_at, output, w)
            self._transform_output(n, group, start, count, accumulators_at, output)

    @kernel
    def _shared(self, n: Value) -> Value:
        """Where the transformed input of an image lies that is shared."""
        plan = self.plan
        image_points = size("shared_at", plan.slots * plan.task_size) + n * size("input_size", plan.input_size)
        return image_points

    @kernel
    def _place(self, start: Index, patch: Index) -> tuple[Value, Value]:
        """The first row and pixel of the result of a patch."""
        plan, edge, (rows, pixels) = self.plan, self.scheme.result, self.plan.dilation
        number, phase = start + patch, None
        if plan.phases > 1:
            per_phase = size("per_phase", plan.per_phase)
            phase = number // per_phase
            number = number % per_phase
        down = number // self.across
        row = down * (edge * rows)
        pixel = (number - down * self.across) * (edge * pixels)
        return (row, pixel) if phase is None else (row + phase // pixels, pixel + phase % pixels)

    @kernel
    def _left(self, row: Value, pixel: Value, more: int) -> tuple[Value, Value] | None:
        """The rows and pixels of its phase from a place to the end of the result, and `more`; None where there are
        enough.
        """
        plan = self.plan
        if plan.is_exact:
            return None
        left = size("rows", plan.rows) - row, size("pixels", plan.length) - pixel
        down, across = [
            count if step == 1 else (count + (step - 1)) // step
            for count, step in zip(left, plan.dilation, strict=True)
        ]
        return down + more, across + more

    # --- there

    @kernel
    def _transform_block(self, n: Value, block: Index, start: Index, count: Value, points_at: Value) -> None:
        """Patches `start`, .., `start + count - 1` of a block of channels, into memory from `points_at` on."""
        steps, edge, (down, across) = self.geometry.steps, self.scheme.patch, self.plan.dilation
        x = self.k.buffer(self.code.op.input, self.geometry.start)
        plane_at = n * size("x_batch", steps[0]) + block * size("x_block", steps[1])
        x_row = size("x_row", steps[_ROW])
        block_at = points_at + block * self.input_block
        for patch in range(0, count):
            row, pixel = self._place(start, patch)
            x_at = plane_at + row * x_row + pixel * self.lanes
            limits = self._left(row, pixel, WINDOW - 1)
            loaded = load_patch(x, x_at, (x_row * down, self.lanes * across), (edge, edge, self.lanes), limits)
            points = transform(loaded, self.scheme.input_matrix)
            to = block_at + patch * self.lanes
            self._keep(points, to, self.input_point * edge, self.input_point)

    @kernel
    def _keep(self, tile: Value, at: Value, row_step: Index, column_step: Value) -> None:
        """Store element i, j of a tile at `at + i * row step + j * column step`."""
        memory = strided(self.memory, 1, row_step, column_step, 1)
        for element, row, column, lane in elements(tile):
            memory[at, row, column, lane] = element

    # --- products

    @kernel
    def _multiply(
        self,
        group: Value,
        count: Value,
        points_at: Value,
        accumulators_at: Value,
        output: tuple[Value, Value],
        w: Value,
    ) -> None:
        """For each point: `accumulators[patch, k] = sum over c of points[patch, c] * weights[c, k]`."""
        plan, lanes, shape, points = self.plan, self.lanes, self.shape, self.scheme.points
        panel_size, panels = size("panel_size", plan.panel_size), size("panels_per_group", plan.cut.panels_per_group)
        output_point, output_block = output
        # A tile asks for its part of the next panel: so many of the lines that a step reads.
        part = -(-_UNROLLED * shape.blocks // (plan.cut.per_task // shape.pixels))
        first_panel = group * points * panels
        for point in range(points):
            for panel in range(panels):
                for patch in range(0, count, shape.pixels):
                    w_at = (first_panel + point * panels + panel) * panel_size
                    patch_at = points_at + point * self.input_point + patch * lanes
                    # The prefetch distance: the tile's part of the next panel's lines.
                    ahead = panel_size + patch // shape.pixels * (part * lanes)
                    lines = [ahead + line * lanes for line in range(part)]
                    accumulators = fill(0.0, shape.pixels, shape.blocks, lanes)
                    for block in range(size("blocks_in", plan.image.blocks_in)):
                        block_at = patch_at + block * self.input_block
                        for c in range(0, lanes, _UNROLLED):
                            c_at = block_at + c
                            for line in lines:
                                prefetch(w, w_at + line)
                            accumulators = multiply_add(accumulators, self.memory, c_at, (lanes, 1), w, w_at, _UNROLLED)
                            w_at += _UNROLLED * shape.blocks * lanes
                    to = accumulators_at + point * output_point + panel * shape.blocks * output_block + patch * lanes
                    self._keep(accumulators, to, lanes, output_block)

    # --- and back

    @kernel
    def _transform_output(
        self, n: Value, group: Value, start: Value, count: Value, accumulators_at: Value, output: tuple[Value, Value]
    ) -> None:
        plan, edge, per_group = self.plan, self.scheme.patch, size("blocks_per_group", self.plan.blocks_per_group)
        output_point, output_block = output
        rows, pixels = plan.dilation
        patch_row = output_point * edge
        first_block = group * per_group
        for block in range(min(size("blocks_out", plan.image.blocks_out) - first_block, per_group)):
            for patch in range(count):
                row, pixel = self._place(start, patch)
                at = accumulators_at + block * output_block + patch * self.lanes
                accumulators = load_patch(self.memory, at, (patch_row, output_point), (edge, edge, self.lanes), None)
                result = transform(accumulators, self.scheme.output_matrix)
                block_out = first_block + block
                lane = Span(place(0), lane=1)
                spans = [Span(n), Span(block_out), Span(row, row=rows), Span(pixel, column=pixels), lane]
                left = self._left(row, pixel, 0)
                if self.pooling is not None:
                    self._store_pooled(self.pooling, result, spans, left)
                elif left is None:
                    self.code.finish(result, spans, None, None)
                else:
                    rows_left, valid = left[0], left[1] * self.lanes
                    self.code.finish(result, spans, rows_left, valid)

    @kernel
    def _store_pooled(
        self, pooling: TilePooling, result: Value, spans: list[Span], left: tuple[Value, Value] | None
    ) -> None:
        """Put a patch that lies at `spans` through the epilogue and store its windows, of which whole ones are left."""
        code, edge = self.code, self.scheme.result
        values = code.through_epilogue(result, spans, None)
        windows = pooling.start(edge // pooling.rows, edge // pooling.columns, self.lanes)
        pooled = pooling.combine(values, windows)
        batch, block, rows, pixels, lane = spans
        row, pixel = value_of(rows.start) // pooling.rows, value_of(pixels.start) // pooling.columns
        rows_left, valid = None, None
        if left is not None:
            rows_left = left[0] // pooling.rows
            valid = left[1] // pooling.columns * self.lanes
        at = [batch, block, Span(row, row=rows.row), Span(pixel, column=pixels.column), lane]
        code.finish(pooled, at, rows_left, valid, pooling.factor(), is_final=True)
