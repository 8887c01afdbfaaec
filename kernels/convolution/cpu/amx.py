"""Int8 convolutions on the matrix unit of x86 processors: pixels and their neighbours by channels."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from mlirt.dialects.cpu_device import CpuDevice
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.kernel.amx import LANES
from mlirt.dialects.kernel.features import need_features
from mlirt.dialects.target import AMX
from mlirt.dialects.tensor_types import dims
from mlirt.kernels.convolution.cpu.geometry import Geometry, geometry_of, is_flat
from mlirt.kernels.convolution.cpu.packing import pack
from mlirt.kernels.convolution.cpu.tile_choice import choose_tile, cycles
from mlirt.kernels.convolution.cpu.tiles import ConvolutionKernel
from mlirt.kernels.lib.cpu.amx_choice import MatrixTile, choose_matrix_tile, piece_of, taps_at_once
from mlirt.kernels.lib.cpu.register_tiles.tile_code import TileCode
from mlirt.kernels.lib.cpu.register_tiles.tile_rows import Grid, Place
from mlirt.kernels.lib.cpu.register_tiles.tile_tasks import Tasks, Work, choose_tasks
from mlirt.kernels.lib.language import Index, Value, build, kernel
from mlirt.kernels.lib.language.amx_words import clear_accumulators, dot_add, matrix_unit, store_accumulators
from mlirt.kernels.lib.language.tile_words import load, prefetch, worker_memory
from mlirt.kernels.lib.language.words import size
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.lib.tactics.registry import TACTIC
from mlirt.kernels.lib.tile import RegisterTile

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 30

# How much faster than vectors it has to be by the models of both: sums take a way through memory.
_MIN_GAIN = 1.3


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    if not lowering.target.special >= AMX:
        return False
    geometry, weights = geometry_of(op, lowering), lowering.known(op.kernel)
    if geometry is None or weights is None or geometry.word == 1 or geometry.is_depthwise or geometry.lanes != LANES:
        return False
    geometry = replace(geometry, parts=None)  # the unit multiplies by all blocks of the input
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
    if cost * steps * _MIN_GAIN > by_vectors and TACTIC not in op.attributes:
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
    shape = choose_tile(length, geometry.blocks_out, cpu)
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
        super().__init__(code, geometry, RegisterTile(tile.length, tile.columns), grid, tasks, weights)
        self.tile_shape, self.taps = tile, taps
        self.depth, self.amx_tile = taps * geometry.depth, (tile.rows, tile.columns, tile.pixels)
        memory = build(self.k, worker_memory, i32, tile.length * tile.columns * LANES)
        self.memory = self.k.named(memory, "memory", keep=True)

    @kernel
    def _tasks(self) -> None:
        with matrix_unit(self.amx_tile, self.depth):
            ConvolutionKernel._tasks(self)

    @kernel
    def tiles(self, place: Place, first: Index, last: Value, is_whole: bool) -> None:
        for pixel in range(first, last, self.grid.pixels):
            self.tile(place, pixel if is_whole else min(pixel, last - self.grid.pixels), None)

    @kernel
    def tile(self, place: Place, pixel: Index, rows: Value | None) -> None:
        tile, count = self.tile_shape, piece_of(self.tile_shape)
        shape, width = self.amx_tile, tile.columns * LANES
        x_at = self.window_start(place, pixel)
        ahead = self.ahead_of(place, pixel, self.depth // self.geometry.word * tile.columns)
        clear_accumulators(shape)
        self._add_products(shape, x_at, place.task[1], ahead)
        store_accumulators(shape, self.memory)
        block_out, valid = self.blocks_out(place.panel)
        for piece in range(0, tile.length, count):
            row_at, here = piece * width, pixel + piece
            accumulators = load(self.memory, row_at, width, (count, tile.columns, LANES))
            self.code.finish(accumulators, self.spans(place, block_out, here), None, valid)

    @kernel
    def _add_products(self, shape: tuple[int, int, int], x_at: Value, w_at: Value, ahead: list[Index]) -> None:
        """As `_sum` of vectors, with as many pixels of a row of the window at once as fill a register."""
        g, once = self.geometry, (0,)
        is_point, whole_rows = g.window == (1, 1), self.taps == g.window[1]
        for block in range(size("blocks", g.blocks_in)):
            block_at = x_at + block * size("x_block", g.steps[1])
            row_step = 0 if is_point else size("x_window_row", g.steps[2] * g.dilation[0])
            for r in once if is_point else range(size("window_rows", g.window[0])):
                row_at = block_at + r * row_step
                column_step = 0 if whole_rows else size("x_window_column", g.steps[3] * g.dilation[1])
                for s in once if whole_rows else range(0, size("window_columns", g.window[1]), self.taps):
                    at, step = row_at + s * column_step, self.pixel_step()
                    for line in ahead:
                        prefetch(self.weights, w_at + line)
                    dot_add(shape, self.input, at, step, self.weights, w_at)
                    w_at += self.depth * self.width
