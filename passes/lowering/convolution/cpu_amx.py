"""Int8 convolutions on the matrix unit of x86 processors: pixels and their neighbours by channels."""

from __future__ import annotations

from functools import partial

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from mlirt.dialects.cpu_device import CpuDevice
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.kernel.amx import (
    AMX,
    LANES,
    AmxBeginOp,
    AmxClearOp,
    AmxDotAddOp,
    AmxEndOp,
    AmxStoreOp,
)
from mlirt.dialects.kernel.features import need_features
from mlirt.dialects.kernel.tile_loads import TileLoadOp
from mlirt.dialects.kernel.worker import PrefetchOp, WorkerMemoryOp
from mlirt.dialects.tensor_types import dims
from mlirt.passes.lowering.convolution.cpu_amx_choice import MatrixTile, choose_matrix_tile, piece_of, taps_at_once
from mlirt.passes.lowering.convolution.cpu_geometry import Geometry, geometry_of, is_flat
from mlirt.passes.lowering.convolution.cpu_packing import pack
from mlirt.passes.lowering.convolution.cpu_tile_choice import TileShape, choose_tile, cycles
from mlirt.passes.lowering.convolution.cpu_tiles import ConvolutionKernel
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.register_tiles.tile_code import TileCode
from mlirt.passes.lowering.register_tiles.tile_rows import Grid, Place
from mlirt.passes.lowering.register_tiles.tile_tasks import Tasks, Work, choose_tasks
from mlirt.passes.lowering.tactics import TACTIC

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 30

# How much faster than vectors it has to be by the models of both: sums take a way through memory.
_LEAST_GAIN = 1.3


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    if not lowering.target.special >= AMX:
        return False
    geometry, weights = geometry_of(op, lowering), lowering.known(op.kernel)
    if geometry is None or weights is None or geometry.word == 1 or geometry.is_depthwise or geometry.lanes != LANES:
        return False
    k = lowering.kernel("convolution")
    code = TileCode(k, op, lowering, geometry.lanes)
    batch, _, rows, length, _ = dims(op.output.type)
    flat = is_flat(geometry, code, length)
    rows, length = (1, rows * length) if flat else (rows, length)
    if not isinstance(length, int):
        return False
    taps = taps_at_once(geometry.window[1], geometry.depth, geometry.dilation[1])
    tile, cost = choose_matrix_tile(length, geometry.blocks_out, taps * geometry.depth, lowering.target.cpu)
    steps = geometry.window[0] * geometry.window[1] // taps * geometry.blocks_in
    by_vectors = _vector_cycles(geometry, length, lowering.target.cpu)
    if cost * steps * _LEAST_GAIN > by_vectors and TACTIC not in op.attributes:
        return False
    panels = -(-geometry.blocks_out // tile.columns) * geometry.groups
    work = Work(
        rows=length if flat else rows,
        panels=panels,
        batch=batch,
        row_bytes=(1 if flat else length)
        * geometry.stride[0]
        * geometry.stride[1]
        * geometry.blocks_in
        * geometry.depth,
        weight_bytes=weights.nbytes,
        cycles=-(-int(cost * steps) // (panels * (length if flat else 1))),
        multiple=tile.length if flat else 1,
    )
    tasks = choose_tasks(work, lowering.target.threads, lowering.target.cpu.tiles)
    sizes = {"groups": geometry.groups, "columns": tile.columns, "lanes": geometry.lanes}
    packed = lowering.packed(op.kernel, partial(pack, **sizes, input_lanes=geometry.depth, word=geometry.word))
    need_features(k.function, AMX)
    grid = Grid(batch, rows, length, panels, tile.length, flat)
    AmxKernel(code, geometry, tile, taps, grid, tasks, k.weights(packed, "convolution panels")).write()
    k.finish(op)
    return True


def _vector_cycles(geometry: Geometry, length: int, cpu: CpuDevice) -> float:
    """What the same row takes with vectors."""
    shape = choose_tile(length, geometry.blocks_out, cpu, 2)
    tiles = -(-length // shape.pixels) * -(-geometry.blocks_out // shape.blocks)
    steps = geometry.window[0] * geometry.window[1] * geometry.blocks_in * (geometry.depth // geometry.word)
    return tiles * steps * cycles(shape, cpu)


class AmxKernel(ConvolutionKernel):
    """A tile: `clear; for block, for r, for groups of s: add pixels * weights; store; finish, piece by piece`.

    The last tile of a row ends where the row ends, so that a part of it is computed twice and nothing beyond is read.
    """

    def __init__(
        self,
        code: TileCode,
        geometry: Geometry,
        tile: MatrixTile,
        taps: int,
        grid: Grid,
        tasks: Tasks,
        weights: SSAValue,
    ) -> None:
        super().__init__(code, geometry, TileShape(tile.length, tile.columns), grid, tasks, weights)
        self.tile_shape, self.taps = tile, taps
        self.depth = taps * geometry.depth

    def write(self) -> None:
        k, tile = self.k, self.tile_shape
        memory = k.value(WorkerMemoryOp(i32, tile.length * tile.columns * LANES))
        self.memory = self.code.named(memory, "memory")
        k.insert(AmxBeginOp(tile.rows, tile.columns, tile.pixels, self.depth))
        super().write()
        k.insert(AmxEndOp())

    def tiles(self, place: Place, first: SSAValue, last: SSAValue, is_whole: bool) -> None:
        code, k, count = self.code, self.k, self.grid.pixels

        def one(pixel: SSAValue) -> None:
            start = pixel if is_whole else code.named(k.min(pixel, k.sub(last, count)), "start")
            self.tile(place, start, None)

        code.count(first, last, count, "pixel", one)

    def tile(self, place: Place, pixel: SSAValue, rows: SSAValue | None) -> None:
        k, tile = self.k, self.tile_shape
        at = self.window_start(place, pixel)
        self.ahead = self.ahead_of(place, pixel, self.depth // self.geometry.word * tile.columns)
        k.insert(AmxClearOp(tile.rows * tile.columns))
        self._add_products(at)
        k.insert(AmxStoreOp(self.memory, tile.rows, tile.columns, tile.pixels))
        block, valid = self.blocks_out(place.panel)
        size = piece_of(tile)

        def piece(start: SSAValue) -> None:
            width = tile.columns * LANES
            shape = (size, tile.columns, LANES)
            sums = TileLoadOp(self.memory, k.mul(start, width), k.constant(width), shape, None)
            here = self.code.named(k.add(pixel, start), "here")
            self.code.finish(self.code.named(k.value(sums), "sums"), self.spans(place, block, here), None, valid)

        self.code.count(k.constant(0), k.constant(tile.length), size, "piece", piece)

    def _add_products(self, at: SSAValue) -> None:
        code, k, g = self.code, self.k, self.geometry
        zero, tile = k.constant(0), self.tile_shape
        line = self.depth * self.width

        def add(start: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
            (w_at,) = state
            step = self.pixel_step()
            for ahead in self.ahead:
                k.insert(PrefetchOp(self.weights, k.add(w_at, ahead)))
            k.insert(AmxDotAddOp(self.input, start, step, self.weights, w_at, tile.rows, tile.columns, tile.pixels))
            return [k.add(w_at, line)]

        def across(start: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
            if self.taps == g.window[1]:
                return add(start, state)
            column_step, stop = code.size("x_window_column", g.steps[3] * g.dilation[1]), g.window[1]
            return code.carry(
                zero,
                code.size("window_columns", stop),
                self.taps,
                "s",
                state,
                lambda s, inner: add(k.add(start, k.mul(s, column_step)), inner),
            )

        def down(start: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
            if g.window == (1, 1):
                return add(start, state)
            row_step = code.size("x_window_row", g.steps[2] * g.dilation[0])
            stop = code.size("window_rows", g.window[0])
            return code.carry(
                zero,
                stop,
                1,
                "r",
                state,
                lambda r, inner: across(code.named(k.add(start, k.mul(r, row_step)), "row_at"), inner),
            )

        def block(number: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
            return down(code.named(k.add(at, k.mul(number, code.size("x_block", g.steps[1]))), "block_at"), state)

        code.carry(zero, code.size("blocks", g.blocks_in), 1, "block", [self.w_at], block)
