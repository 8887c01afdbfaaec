"""Convolutions of blocked tensors on register tiles: some pixels of a row by some blocks of channels at a time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from mlirt.dialects.cpu_device import CpuDevice
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.kernel.features import need_features
from mlirt.dialects.kernel.tile import TileFillOp
from mlirt.dialects.kernel.tile_products import INT8_PRODUCTS, TileDotAddOp, TileMultiplyAddLanesOp, TileMultiplyAddOp
from mlirt.dialects.kernel.worker import PrefetchOp
from mlirt.dialects.symbolic import Dim, ceil_div, floor_div
from mlirt.passes.lowering.convolution.cpu_geometry import Geometry, geometry_of, is_flat
from mlirt.passes.lowering.convolution.cpu_packing import pack, pack_depthwise
from mlirt.passes.lowering.convolution.cpu_tile_choice import TileShape, choose_tile, cycles, lines_for_each
from mlirt.passes.lowering.convolution.tile_pooling import TilePooling, tile_pooling, tiles_can_pool
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.register_tiles.tile_code import TileCode
from mlirt.passes.lowering.register_tiles.tile_rows import Grid, Place, TileRows
from mlirt.passes.lowering.register_tiles.tile_tasks import Tasks, Work, choose_tasks

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 20
POOLS = True

_UNROLLED = 4


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    geometry, weights = geometry_of(op, lowering), lowering.known(op.kernel)
    if geometry is None or weights is None or not tiles_can_pool(op):
        return False
    k = lowering.kernel("depthwise" if geometry.is_depthwise else "convolution")
    code, pooling = TileCode(k, op, lowering, geometry.lanes), tile_pooling(op)
    batch, _, rows, length, _ = op.epilogue_dims()
    flat = pooling is None and is_flat(geometry, code, length)
    rows, length = (1, rows * length) if flat else (rows, length)
    multiple = 1 if pooling is None else pooling.columns
    shape = choose_tile(length, geometry.blocks_out, lowering.target.cpu, _factors(geometry), multiple)
    panels = -(-geometry.blocks_out // shape.blocks) * geometry.groups
    high = 1 if pooling is None else pooling.rows
    work = Work(
        rows=length if flat else floor_div(rows, high),
        panels=panels,
        batch=batch,
        row_bytes=_row_bytes(geometry, 1 if flat else length) * high,
        weight_bytes=weights.nbytes,
        cycles=_row_cycles(geometry, shape, 1 if flat else length, lowering.target.cpu) * high,
        multiple=shape.pixels if flat else 1,
    )
    tasks = choose_tasks(work, lowering.target.threads, lowering.target.cpu.tiles)
    packed = lowering.packed(op.kernel, partial(_packed, geometry, shape.blocks))
    if not geometry.is_depthwise:
        need_features(k.function, INT8_PRODUCTS & lowering.target.special if geometry.word > 1 else ())
    grid = Grid(batch, work.rows if pooling else rows, length, panels, shape.pixels, flat)
    ConvolutionKernel(code, geometry, shape, grid, tasks, k.weights(packed, "convolution panels"), pooling).write()
    k.finish(op)
    return True


def _packed(geometry: Geometry, blocks: int, weights: Array) -> Array:
    if geometry.is_depthwise:
        return pack_depthwise(weights.astype("float32"), geometry.lanes)
    return pack(weights, geometry.groups, blocks, geometry.lanes, geometry.depth, geometry.word)


def _factors(geometry: Geometry) -> int:
    """The registers for pixels: floats are spread by the multiplication itself, bytes before it."""
    return 2 if geometry.word > 1 and not geometry.is_depthwise else 1


def _row_bytes(geometry: Geometry, length: Dim) -> Dim:
    """Bytes of the input that a row of the result adds to what is read."""
    width = 1 if geometry.word > 1 else 4
    return length * (geometry.stride[0] * geometry.stride[1] * geometry.blocks_in * geometry.depth * width)


def _row_cycles(geometry: Geometry, shape: TileShape, length: Dim, cpu: CpuDevice) -> Dim:
    """What the tiles of a row of one panel take."""
    each = 1 if geometry.is_depthwise else geometry.depth // geometry.word
    steps = geometry.window[0] * geometry.window[1] * geometry.blocks_in * each
    return ceil_div(length * int(steps * cycles(shape, cpu)), shape.pixels)


class ConvolutionKernel(TileRows):
    """A tile: `sums = 0; for block, for r, for s, for c: sums += pixels * weights; finish(sums)`.

    With pooling, a row of the grid is one of windows, and what `pooling` keeps of the tiles of its rows is stored.
    """

    def __init__(
        self,
        code: TileCode,
        geometry: Geometry,
        shape: TileShape,
        grid: Grid,
        tasks: Tasks,
        weights: SSAValue,
        pooling: TilePooling | None = None,
    ) -> None:
        super().__init__(code, grid, tasks)
        self.geometry, self.shape, self.pooling = geometry, shape, pooling
        self.weights = code.named(weights, "w")
        self.input = code.named(self.k.buffer(code.op.input, geometry.start), "x")
        self.panels_per_group = grid.panels // geometry.groups
        self.width = shape.blocks * geometry.lanes

    # --- where a task finds its operands

    def start_task(self, batch: SSAValue, panel: SSAValue) -> None:
        code, k, g = self.code, self.k, self.geometry
        self.w_at = code.named(k.mul(panel, code.size("panel_size", self._panel_size())), "w_start")
        at = k.mul(batch, code.size("x_batch", g.steps[0]))
        if g.groups > 1:
            at = k.add(at, k.mul(self._group(panel), code.size("x_group", g.steps[1] * g.blocks_in)))
        self.x_at = code.named(at, "x_start")

    def _panel_size(self) -> int:
        g = self.geometry
        return g.blocks_in * g.window[0] * g.window[1] * (1 if g.is_depthwise else g.depth) * self.width

    def _group(self, panel: SSAValue) -> SSAValue:
        if self.panels_per_group == 1:
            return panel
        return self.k.div(panel, self.code.size("panels_per_group", self.panels_per_group))

    # --- one tile

    def window_start(self, place: Place, pixel: SSAValue) -> SSAValue:
        """Where the window of a pixel starts in the input."""
        code, k, g = self.code, self.k, self.geometry
        at = self.x_at
        if not self.grid.is_flat:
            at = k.add(at, k.mul(place.row, code.size("x_row", g.steps[2] * g.stride[0])))
        return code.named(k.add(at, k.mul(pixel, self.pixel_step())), "x_at")

    def tile(self, place: Place, pixel: SSAValue, rows: SSAValue | None) -> None:
        if self.pooling is not None:
            self._pooled_tile(self.pooling, place, pixel, rows)
            return
        sums = self._tile_sums(place, pixel, rows)
        block, valid = self.blocks_out(place.panel)
        self.code.finish(sums, self.spans(place, block, pixel), rows, valid)

    def _pooled_tile(self, pooling: TilePooling, place: Place, pixel: SSAValue, rows: SSAValue | None) -> None:
        """`for r in the rows of a window: pooled = combine(pooled, epilogue(sums of row r))`, and its store."""
        code, k, across = self.code, self.k, pooling.columns
        block, valid = self.blocks_out(place.panel)
        block = code.named(block, "block_out")
        first = code.named(k.mul(place.row, pooling.rows), "first_line")

        def line(r: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
            here = Place(place.batch, place.panel, code.named(k.add(first, r), "line"))
            sums = self._tile_sums(here, pixel, rows)
            values = code.through_epilogue(sums, self.spans(here, block, pixel), valid)
            return [pooling.combine(code, values, state[0])]

        pooled = pooling.start(code, self.shape.pixels // across, self.shape.blocks)
        lines = code.size("window_lines", pooling.rows)
        (pooled,) = code.carry(k.constant(0), lines, 1, "r", [pooled], line)
        windows = None if rows is None else code.named(k.div(rows, across), "windows")
        spans = self.spans(place, block, code.named(k.div(pixel, across), "window"))
        code.finish(pooled, spans, windows, valid, pooling.factor(code), is_final=True)

    def _tile_sums(self, place: Place, pixel: SSAValue, rows: SSAValue | None) -> SSAValue:
        code, k, g = self.code, self.k, self.geometry
        at = self.window_start(place, pixel)
        lines = min(g.depth // g.word, _UNROLLED) * self.shape.blocks
        self.ahead = [] if g.depth == 1 or g.is_depthwise else self.ahead_of(place, pixel, lines)
        zero = k.constant(0, i32) if g.word > 1 and not g.is_depthwise else k.constant(0.0, f32)
        fill = TileFillOp(zero, self.shape.pixels, self.shape.blocks, g.lanes)
        return self._sum(code.named(k.value(fill), "sums"), at, rows)

    def ahead_of(self, place: Place, pixel: SSAValue, lines: int) -> list[SSAValue]:
        """How far ahead the weights lie that a tile asks for in each step: its part of the next panel's lines, of which
        a step reads `lines`.
        """
        code, k, lanes = self.code, self.k, self.geometry.lanes * self.geometry.word
        each = lines_for_each(lines, self._tiles_of_panel())
        number = k.add(place.row, k.div(pixel, self.shape.pixels))
        line = k.mul(k.rem(number, -(-lines // each)), lanes * each)
        first = code.named(k.add(code.size("panel_size", self._panel_size()), line), "ahead")
        return [k.add(first, number * lanes) for number in range(each)]

    def _tiles_of_panel(self) -> int | None:
        """How many tiles a task multiplies with one panel, where that is known."""
        rows, length, pixels = self.tasks.rows, self.grid.length, self.grid.pixels
        rows = rows if self.pooling is None else rows * self.pooling.rows
        if self.grid.is_flat:
            return -(-rows // pixels) if isinstance(rows, int) else None
        return rows * -(-length // pixels) if isinstance(rows, int) and isinstance(length, int) else None

    def pixel_step(self) -> SSAValue:
        """The distance between the windows of neighbouring pixels; a number shapes the code."""
        step = self.geometry.steps[3] * self.geometry.stride[1]
        return self.k.constant(step) if isinstance(step, int) else self.code.size("x_pixel", step)

    def _sum(self, sums: SSAValue, at: SSAValue, rows: SSAValue | None) -> SSAValue:
        code, k, g = self.code, self.k, self.geometry
        zero, step = k.constant(0), self.pixel_step()
        is_point = g.window == (1, 1)

        def block(number: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
            start = code.named(k.add(at, k.mul(number, code.size("x_block", g.steps[1]))), "block_at")
            return cell(start, state) if is_point else window(start, state)

        def window(start: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
            row_step = code.size("x_window_row", g.steps[2] * g.dilation[0])
            column_step = code.size("x_window_column", g.steps[3] * g.dilation[1])

            def row(r: SSAValue, outer: list[SSAValue]) -> list[SSAValue]:
                here = code.named(k.add(start, k.mul(r, row_step)), "row_at")
                stop = code.size("window_columns", g.window[1])
                return code.carry(
                    zero, stop, 1, "s", outer, lambda s, inner: cell(k.add(here, k.mul(s, column_step)), inner)
                )

            return code.carry(zero, code.size("window_rows", g.window[0]), 1, "r", state, row)

        def cell(start: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
            if g.is_depthwise:
                tile, w_at = state
                added = TileMultiplyAddLanesOp(tile, self.input, start, step, self.weights, w_at, rows)
                return [code.named(k.value(added), "added"), k.add(w_at, self.width)]
            if g.depth == 1:
                return multiply(start, 1, state)
            at, stop, depth = code.named(start, "cell_at"), k.constant(g.depth), min(g.depth // g.word, _UNROLLED)
            if depth * g.word == g.depth:
                return multiply(at, depth, state)
            return code.carry(
                zero, stop, depth * g.word, "c", state, lambda c, inner: multiply(k.add(at, c), depth, inner)
            )

        def multiply(place: SSAValue, depth: int, state: list[SSAValue]) -> list[SSAValue]:
            tile, w_at = state
            one = k.constant(1)
            for line in self.ahead:
                k.insert(PrefetchOp(self.weights, k.add(w_at, line)))
            if g.word > 1:
                added = TileDotAddOp(tile, self.input, place, step, self.weights, w_at, depth, rows)
            else:
                added = TileMultiplyAddOp(tile, self.input, place, step, one, self.weights, w_at, depth, rows)
            return [code.named(k.value(added), "added"), k.add(w_at, depth * g.word * self.width)]

        state = [sums, self.w_at]
        if g.blocks_in == 1 and not is_point:
            return window(at, state)[0]
        return code.carry(zero, code.size("blocks", g.blocks_in), 1, "block", state, block)[0]

    def blocks_out(self, panel: SSAValue) -> tuple[SSAValue, SSAValue | None]:
        """The first block of the result, and how many elements from there on belong to it where that is not certain."""
        code, k, g = self.code, self.k, self.geometry
        if g.blocks_out % self.shape.blocks == 0:
            return k.mul(panel, self.shape.blocks), None
        blocks = code.size("blocks_out", g.blocks_out)
        first, within = k.constant(0), panel
        if g.groups > 1:
            group = self._group(panel)
            within = k.sub(panel, k.mul(group, code.size("panels_per_group", self.panels_per_group)))
            first = k.mul(group, blocks)
        start = k.mul(within, self.shape.blocks)
        return k.add(first, start), code.named(k.mul(k.sub(blocks, start), g.lanes), "valid")
