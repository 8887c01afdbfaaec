"""Convolutions of blocked tensors on register tiles: some pixels of a row by some blocks of channels at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from mlirt.dialects.cpu_device import CpuDevice
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.kernel.features import need_features
from mlirt.dialects.kernel.tile_products import INT8_PRODUCTS, SIGNED
from mlirt.dialects.symbolic import Dim, ceil_div, floor_div
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.convolution.cpu.geometry import Geometry, flat_step, geometry_of
from mlirt.kernels.convolution.cpu.merged_parts import Parts
from mlirt.kernels.convolution.cpu.packing import pack, pack_depthwise
from mlirt.kernels.convolution.cpu.tile_choice import choose_tile, cycles, lines_for_each, tile_cycles
from mlirt.kernels.convolution.cpu.tile_pooling import TilePooling, tile_pooling, tiles_can_pool
from mlirt.kernels.lib.cpu.register_tiles.signed_sums import first_sums, multiplies_signed
from mlirt.kernels.lib.cpu.register_tiles.step_registers import ONE_BY_ONE, StepRegisters, step_registers
from mlirt.kernels.lib.cpu.register_tiles.tile_code import TileCode
from mlirt.kernels.lib.cpu.register_tiles.tile_rows import Grid, Place, TileRows
from mlirt.kernels.lib.cpu.register_tiles.tile_tasks import Tasks, Work, choose_tasks
from mlirt.kernels.lib.language import Index, Value, kernel, value_of
from mlirt.kernels.lib.language.tile_words import (
    fill,
    load,
    multiply_add,
    multiply_add_int8,
    multiply_add_lanes,
    prefetch,
)
from mlirt.kernels.lib.language.words import constant, size, static_range
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.lib.tile import RegisterTile, tile_estimates, tile_named

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 20
POOLS = True

_UNROLLED = 4
_LINE_BYTES = 64


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    """The best tiles by their names, `14x2` for 14 pixels by two blocks of channels, and about their microseconds."""
    geometry = geometry_of(op, lowering)
    if geometry is None or lowering.known(op.kernel) is None or not tiles_can_pool(op):
        return {}
    pooling = tile_pooling(op)
    code = TileCode(lowering.kernel("convolution"), op, lowering, geometry.lanes)
    batch, _, rows, length, _ = op.epilogue_dims()
    step = flat_step(geometry, code, rows, length) if pooling is None else None
    rows, length = (rows, length) if step is None else (1, rows * length)
    known = typical_values(lowering.block)
    times = (
        geometry.groups
        * geometry.sum_steps
        * typical(batch * rows if isinstance(length, int) else batch * rows * length, known)
    )
    multiple = 1 if pooling is None else pooling.columns
    room = _room(geometry, step, lowering)
    needed = geometry.needed
    costs = tile_cycles(length, geometry.blocks_out, lowering.target.cpu, multiple, needed, room, geometry.sum_steps)
    return tile_estimates(costs, times / lowering.target.threads)


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    geometry, weights = geometry_of(op, lowering), lowering.known(op.kernel)
    if geometry is None or weights is None or not tiles_can_pool(op):
        return False
    k = lowering.kernel("depthwise" if geometry.is_depthwise else "convolution")
    code, pooling = TileCode(k, op, lowering, geometry.lanes), tile_pooling(op)
    batch, _, rows, length, _ = op.epilogue_dims()
    step = flat_step(geometry, code, rows, length) if pooling is None else None
    flat = step is not None
    rows, length = (1, rows * length) if flat else (rows, length)
    multiple = 1 if pooling is None else pooling.columns
    cpu, needed = lowering.target.cpu, geometry.needed
    room = _room(geometry, step, lowering)
    shape = tile_named(lowering.choice(op)) or choose_tile(
        length, geometry.blocks_out, cpu, multiple, needed, room, geometry.sum_steps
    )
    if shape.pixels % multiple or not room.fit(shape, cpu.registers):
        return False
    panels = -(-geometry.blocks_out // shape.blocks) * geometry.groups
    high = 1 if pooling is None else pooling.rows
    work = Work(
        rows=length if flat else floor_div(rows, high),
        panels=panels,
        batch=batch,
        row_bytes=_row_bytes(geometry, 1 if flat else length) * high,
        weight_bytes=int(weights.nbytes * needed(shape.blocks)),
        cycles=_row_cycles(geometry, shape, 1 if flat else length, lowering.target.cpu) * high,
        multiple=shape.pixels if flat else 1,
    )
    tasks = choose_tasks(work, lowering.target.threads, lowering.target.cpu.tiles)
    packed = lowering.packed(op.kernel, partial(_packed, geometry, shape.blocks))
    if not geometry.is_depthwise:
        need_features(k.function, INT8_PRODUCTS & lowering.target.special if geometry.word > 1 else ())
    grid = Grid(batch, work.rows if pooling else rows, length, panels, shape.pixels, flat)
    panels_of_weights, starts = k.weights(packed, "convolution panels"), None
    if geometry.word > 1 and not geometry.is_depthwise and multiplies_signed(cpu, lowering.target.special):
        starts = k.weights(lowering.packed(op.kernel, partial(_first_sums, geometry, shape.blocks)), "first sums")
    ConvolutionKernel(code, geometry, shape, grid, tasks, panels_of_weights, step, pooling, starts).write()
    k.finish(op)
    return True


def _room(geometry: Geometry, step: Dim | None, lowering: Lowering) -> StepRegisters:
    """The registers that a step takes besides accumulators; words of bytes may be those of pixels side by side."""
    if geometry.is_depthwise:
        return ONE_BY_ONE
    pixel_step = geometry.steps[3] * geometry.stride[1] if step is None else step
    beside = geometry.depth == geometry.word > 1 and pixel_step == geometry.word
    return step_registers(lowering.target.cpu, geometry.word, lowering.target.special, rows_beside=beside)


def _packed(geometry: Geometry, blocks: int, weights: Array) -> Array:
    if geometry.is_depthwise:
        return pack_depthwise(weights.astype("float32"), geometry.lanes)
    packed = pack(weights, geometry.groups, blocks, geometry.lanes, geometry.depth, geometry.word)
    return packed if geometry.parts is None else geometry.parts.kept(packed, blocks * geometry.lanes, geometry.depth)


def _first_sums(geometry: Geometry, blocks: int, weights: Array) -> Array:
    outputs = weights.reshape(geometry.groups, len(weights) // geometry.groups, -1)
    return first_sums(blocks * geometry.lanes, outputs)


def _row_bytes(geometry: Geometry, length: Dim) -> Dim:
    """Bytes of the input that a row of the result adds to what is read."""
    width = 1 if geometry.word > 1 else 4
    return length * (geometry.stride[0] * geometry.stride[1] * geometry.blocks_in * geometry.depth * width)


def _row_cycles(geometry: Geometry, shape: RegisterTile, length: Dim, cpu: CpuDevice) -> Dim:
    """What the tiles of a row of one panel take."""
    return ceil_div(length * int(geometry.sum_steps * cycles(shape, cpu) * geometry.needed(shape.blocks)), shape.pixels)


class ConvolutionKernel(TileRows):
    """A tile: `accumulators = 0; for block, for r, for s, for c: accumulators += pixels * weights;
    finish(accumulators)`.

    With pooling, a row of the grid is one of windows, and what `pooling` keeps of the tiles of its rows is stored.
    """

    def __init__(
        self,
        code: TileCode,
        geometry: Geometry,
        shape: RegisterTile,
        grid: Grid,
        tasks: Tasks,
        weights: SSAValue,
        step: Dim | None = None,
        pooling: TilePooling | None = None,
        starts: SSAValue | None = None,
    ) -> None:
        """`step` is the distance between the windows of neighbouring pixels where it is another than within a row;
        `starts` is what the sums of a panel start with where numbers are made signed.
        """
        super().__init__(code, grid, tasks)
        self.geometry, self.shape, self.pooling = geometry, shape, pooling
        self.step = geometry.steps[3] * geometry.stride[1] if step is None else step
        self.weights = code.k.named(weights, "w", keep=True)
        self.input = code.k.named(self.k.buffer(code.op.input, geometry.start), "x", keep=True)
        self.starts, self.offset = starts, 0 if starts is None else SIGNED
        self.panels_per_group = grid.panels // geometry.groups
        self.width = shape.blocks * geometry.lanes

    # --- where a task finds its operands

    @kernel
    def start_task(self, batch: Value, panel: Value) -> tuple[Value, ...]:
        """Where the task's images and weights start, and how many blocks of the input it multiplies, if not all."""
        g = self.geometry
        w_start = panel * size("panel_size", self._panel_size())
        x_start = batch * size("x_batch", g.steps[0])
        if g.groups > 1:
            x_start = x_start + self._group(panel) * size("x_group", g.steps[1] * g.blocks_in)
        if g.parts is None:
            return x_start, w_start
        first_block, count = self._needed_blocks(g.parts, panel)
        return x_start + first_block * size("x_block", g.steps[1]), w_start, count

    @kernel
    def _needed_blocks(self, parts: Parts, panel: Value) -> tuple[Value, Value]:
        """The first block of the input of which a panel has weights, and how many it depends on from there on."""
        g, kept = self.geometry, self._kept_blocks()
        part_inputs, part_outputs = size("part_inputs", parts.inputs), size("part_outputs", parts.outputs)
        within = panel if g.groups == 1 else panel % size("panels_per_group", self.panels_per_group)
        first = within * self.width
        last = min(first + self.width, size("group_outputs", parts.count * parts.outputs)) - 1
        start = first // part_outputs * part_inputs // g.depth
        stop = ((last // part_outputs + 1) * part_inputs + (g.depth - 1)) // g.depth
        first_block = min(start, size("last_start", g.blocks_in - kept))
        count = min(stop - first_block, size("kept_blocks", kept))
        return first_block, count

    def _kept_blocks(self) -> int:
        """The blocks of the input of which a panel has weights."""
        g = self.geometry
        panels = -(-g.blocks_out // self.shape.blocks)
        return g.blocks_in if g.parts is None else g.parts.most(panels, self.width, g.depth)

    def _panel_size(self) -> int:
        g = self.geometry
        return self._kept_blocks() * g.window[0] * g.window[1] * (1 if g.is_depthwise else g.depth) * self.width

    @kernel
    def _group(self, panel: Value) -> Value:
        return panel if self.panels_per_group == 1 else panel // size("panels_per_group", self.panels_per_group)

    # --- one tile

    @kernel
    def window_start(self, place: Place, pixel: Index) -> Value:
        """Where the window of a pixel starts in the input."""
        g, at = self.geometry, place.task[0]
        if not self.grid.is_flat:
            at = at + place.row * size("x_row", g.steps[2] * g.stride[0])
        x_at = at + pixel * self.pixel_step()
        return x_at

    @kernel
    def tile(self, place: Place, pixel: Index, rows: Value | None) -> None:
        if self.pooling is None:
            block_out, valid = self.blocks_out(place.panel)
            spans = self.spans(place, block_out, pixel)
            if self.code.leaves_gaps():
                self.code.prefetch_results(spans, self.shape.pixels, self.shape.blocks)
            accumulators = self._tile_accumulators(place, pixel, rows)
            self.code.finish(accumulators, spans, rows, valid)
        else:
            self._pooled_tile(self.pooling, place, pixel, rows)

    @kernel
    def _pooled_tile(self, pooling: TilePooling, place: Place, pixel: Index, rows: Value | None) -> None:
        """`for r in the rows of a window: pooled = combine(pooled, epilogue(sums of row r))`, and its store."""
        code, across = self.code, pooling.columns
        block_out, valid = self.blocks_out(place.panel)
        first_line = place.row * pooling.rows
        pooled = pooling.start(self.shape.pixels // across, self.shape.blocks, code.lanes)
        for r in range(size("window_lines", pooling.rows)):
            line = first_line + r
            here = replace(place, row=line)
            accumulators = self._tile_accumulators(here, pixel, rows)
            values = code.through_epilogue(accumulators, self.spans(here, block_out, pixel), valid)
            pooled = pooling.combine(values, pooled)
        windows = None if rows is None else rows // across
        window = pixel // across
        code.finish(pooled, self.spans(place, block_out, window), windows, valid, pooling.factor(), is_final=True)

    @kernel
    def _tile_accumulators(self, place: Place, pixel: Index, rows: Value | None) -> Value:
        g = self.geometry
        x_at = self.window_start(place, pixel)
        taps = self._taps(place, pixel)
        vectors = min(g.depth // g.word, _UNROLLED) * self._cells_at_once() * self.shape.blocks
        ahead = [] if g.depth == 1 or g.is_depthwise else self.ahead_of(place, pixel, vectors)
        zero = constant(0, i32) if g.word > 1 and not g.is_depthwise else constant(0.0, f32)
        if self.starts is None:
            accumulators = fill(zero, self.shape.pixels, self.shape.blocks, g.lanes)
        else:
            shape = (self.shape.pixels, self.shape.blocks, g.lanes)
            accumulators = load(self.starts, place.panel * self.width, 0, shape)
        accumulate = self._sum_of_points if g.window == (1, 1) and self._cells_at_once() > 1 else self._sum
        return accumulate(accumulators, x_at, place.task[1:], taps, ahead, rows)

    @kernel
    def _taps(self, place: Place, pixel: Index) -> tuple[tuple[Index, Index], tuple[Index, Index]]:
        """From which to which row and column the windows of a tile read more than padding."""
        g = self.geometry
        rows, columns = g.padded
        row_taps = (0, size("window_rows", g.window[0]))
        column_taps = (0, size("window_columns", g.window[1]))
        if rows is not None and self.skips_rows():
            row_taps = rows.needed(place.row, place.row)
        if columns is not None and self.skips_columns():
            column_taps = columns.needed(pixel, pixel + (self.shape.pixels - 1))
        return row_taps, column_taps

    def skips_rows(self) -> bool:
        """Whether a tile leaves out the rows of its windows that lie in padding; zeros that are made signed count."""
        return self.geometry.padded[0] is not None and not self.grid.is_flat and self.starts is None

    def skips_columns(self) -> bool:
        """The same for columns: tiles that are wider than the padding are never in it as a whole."""
        columns = self.geometry.padded[1]
        is_narrow = columns is not None and columns.pad >= self.shape.pixels * columns.stride
        return is_narrow and self.skips_rows()

    @kernel
    def ahead_of(self, place: Place, pixel: Index, vectors: int) -> list[Index]:
        """How far ahead the weights lie that a tile asks for in each step: its part of the next panel's lines, as far
        as a step reads them with so many vectors.
        """
        lines = -(-vectors * self.geometry.lanes * 4 // _LINE_BYTES)
        length = _LINE_BYTES // (1 if self.geometry.word > 1 else 4)
        each = lines_for_each(lines, self._tiles_of_panel())
        number = place.row + pixel // self.shape.pixels
        line = number % -(-lines // each) * (length * each)
        ahead = size("panel_size", self._panel_size()) + line
        return [ahead + number * length for number in range(each)]

    def _tiles_of_panel(self) -> int | None:
        """How many tiles a task multiplies with one panel, where that is known."""
        rows, length, pixels = self.tasks.rows, self.grid.length, self.grid.pixels
        rows = rows if self.pooling is None else rows * self.pooling.rows
        if self.grid.is_flat:
            return -(-rows // pixels) if isinstance(rows, int) else None
        return rows * -(-length // pixels) if isinstance(rows, int) and isinstance(length, int) else None

    def pixel_step(self) -> Index:
        """The distance between the windows of neighbouring pixels; a number shapes the code."""
        return self.step if isinstance(self.step, int) else value_of(self.k.named_size("x_pixel", self.step))

    def _cells_at_once(self) -> int:
        """How many blocks of a point, or columns of a window, are a step of the sum: several if they have few words, on
        processors that multiply by lanes; others would keep addresses and sums in memory.
        """
        g, is_enough = self.geometry, not self.k.lowering.target.cpu.multiplies_by_lane
        if g.word == 1 or g.is_depthwise or is_enough or g.depth // g.word >= _UNROLLED:
            return 1
        cells = _UNROLLED * g.word // g.depth
        if g.window == (1, 1):
            return min(cells, g.blocks_in)
        return g.window[1] if g.window[1] <= 2 * cells and not self.skips_columns() else 1

    @kernel
    def _sum_of_points(
        self,
        accumulators: Value,
        x_at: Value,
        task: tuple[Value, ...],
        taps: tuple[tuple[Index, Index], tuple[Index, Index]],
        ahead: list[Index],
        rows: Value | None,
    ) -> Value:
        """`for block: accumulators += pixels * weights`, several blocks at a time as long as there are so many."""
        g, w, cells = self.geometry, self.weights, self._cells_at_once()
        w_at, count = task[0], task[1] if task[1:] else size("blocks", g.blocks_in)
        whole = count - count % cells if task[1:] else size("whole_blocks", g.blocks_in // cells * cells)
        at, block_step, step = x_at, size("x_block", g.steps[1]), self.pixel_step()
        for _ in range(0, whole, cells):
            for line in ahead:
                prefetch(w, w_at + line)
            for _ in static_range(cells):
                accumulators = self._added_int8(accumulators, at, step, w_at, g.depth // g.word, rows)
                at += block_step
                w_at += g.depth * self.width
        if task[1:] or g.blocks_in % cells:
            for _ in range(whole, count):
                accumulators = self._added_int8(accumulators, at, step, w_at, g.depth // g.word, rows)
                at += block_step
                w_at += g.depth * self.width
        return accumulators

    def _added_int8(
        self, accumulators: Value, at: Value, step: Index, w_at: Index, depth: int, rows: Value | None
    ) -> Value:
        x, w = self.input, self.weights
        return multiply_add_int8(accumulators, x, at, step, w, w_at, depth, rows, offset=self.offset)

    @kernel
    def _sum(
        self,
        accumulators: Value,
        x_at: Value,
        task: tuple[Value, ...],
        taps: tuple[tuple[Index, Index], tuple[Index, Index]],
        ahead: list[Index],
        rows: Value | None,
    ) -> Value:
        """`for block, for r, for s, for c: accumulators += pixels * weights`; a loop that is not needed has one static
        iteration.
        """
        g, x, w, once = self.geometry, self.input, self.weights, (0,)
        w_at, count = task[0], task[1] if task[1:] else size("blocks", g.blocks_in)
        step, is_point = self.pixel_step(), g.window == (1, 1)
        cell = self.width * (1 if g.is_depthwise else g.depth)
        depth = min(g.depth // g.word, _UNROLLED)
        has_blocks, has_channels = g.blocks_in > 1 or is_point, not g.is_depthwise and depth * g.word < g.depth
        unrolled = self._cells_at_once()
        for block in range(count) if has_blocks else once:
            block_at = x_at + block * size("x_block", g.steps[1]) if has_blocks else x_at
            row_step = 0 if is_point else size("x_window_row", g.steps[2] * g.dilation[0])
            column_step = 0 if is_point else size("x_window_column", g.steps[3] * g.dilation[1])
            w_block = task[0] + block * size("w_block", cell * g.window[0] * g.window[1]) if has_blocks else task[0]
            for r in once if is_point else range(*taps[0]):
                row_at = block_at + r * row_step
                w_row = w_block + r * size("w_window_row", cell * g.window[1]) if self.skips_rows() else w_at
                w_at = w_row
                for s in once if is_point else static_range(unrolled) if unrolled > 1 else range(*taps[1]):
                    w_at = w_row + s * cell if self.skips_columns() else w_at
                    cell_at = row_at + s * column_step
                    for c in range(0, g.depth, depth * g.word) if has_channels else once:
                        at = cell_at + c
                        if g.is_depthwise:
                            accumulators = multiply_add_lanes(accumulators, x, at, step, w, w_at, rows)
                            w_at += self.width
                        else:
                            for line in [] if unrolled > 1 and s > 0 else ahead:
                                prefetch(w, w_at + line)
                            if g.word > 1:
                                accumulators = self._added_int8(accumulators, at, step, w_at, depth, rows)
                            else:
                                accumulators = multiply_add(accumulators, x, at, (step, 1), w, w_at, depth, rows)
                            w_at += depth * g.word * self.width
        return accumulators

    @kernel
    def blocks_out(self, panel: Value) -> tuple[Index, Value | None]:
        """The first block of the result, and how many elements from there on belong to it where that is not certain."""
        g, count = self.geometry, self.shape.blocks
        if g.blocks_out % count == 0:
            return panel * count, None
        blocks, first, within = size("blocks_out", g.blocks_out), 0, panel
        if g.groups > 1:
            group = self._group(panel)
            within = panel - group * size("panels_per_group", self.panels_per_group)
            first = group * blocks
        start = within * count
        valid = (blocks - start) * g.lanes
        return first + start, valid
