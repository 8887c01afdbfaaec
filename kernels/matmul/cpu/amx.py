"""Int8 products with constants on the matrix unit of x86 processors: rows in registers by panels of columns."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from xdsl.dialects.builtin import i32

from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.kernel.amx import LANES, ROW_BYTES
from mlirt.dialects.kernel.features import need_features
from mlirt.dialects.target import AMX
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cpu.amx_choice import MatrixTile, choose_matrix_tile, piece_of
from mlirt.kernels.lib.language import Value, build, kernel
from mlirt.kernels.lib.language.amx_words import clear_accumulators, dot_add, matrix_unit, store_accumulators
from mlirt.kernels.lib.language.tile_words import load, worker_memory
from mlirt.kernels.lib.language.words import size
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.lib.tile import RegisterTile
from mlirt.kernels.matmul.cpu.panel_sources import PackedAtBuild
from mlirt.kernels.matmul.cpu.panels import batch_steps, pack_operand
from mlirt.kernels.matmul.cpu.product import Product
from mlirt.kernels.matmul.cpu.tile_kernel import Panels, Place, TileKernel, Vectors
from mlirt.kernels.matmul.cpu.tiles import multiplies_int8

OPS = (MatmulOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 30

_WORD = 4
# Fewer rows are bound by the memory that the weights come from; a number that the run tells is taken for this one.
_MIN_ROWS, _USUAL_ROWS = 12, 128
# Heights of the tiles of vectors for rows that fill no register.
_TAILS = (8, 4, 2, 1)


def lower(op: MatmulOp, lowering: Lowering) -> bool:
    assert isinstance(op, MatmulOp)
    weights = lowering.known(op.rhs)
    if not lowering.target.special >= AMX or weights is None or not multiplies_int8(op):
        return False
    if lowering.placements[op.output].strides[-1] != 1:
        return False
    *batches, depth, columns = weights.shape
    if op.transpose_rhs.value.data:
        depth, columns = columns, depth
    steps = batch_steps((*batches, 1, depth, columns))
    product = Product.of(op, lowering.placements, steps)
    rows = product.rows if isinstance(product.rows, int) else _USUAL_ROWS
    if rows < _MIN_ROWS or columns == 1 or depth % ROW_BYTES or product.lhs.depth != 1:
        return False
    tile, _ = choose_matrix_tile(rows, math.ceil(columns / LANES), ROW_BYTES, lowering.target.cpu)
    packed = lowering.packed(
        op.rhs, partial(pack_operand, bool(op.transpose_rhs.value.data), tile.columns * LANES, _WORD)
    )
    product = Product.of(op, lowering.placements, batch_steps(packed.array.shape))
    k = lowering.kernel("matmul")
    need_features(k.function, AMX | {"avx512vnni"} & lowering.target.special)
    kernel = AmxTileKernel(k, op, product, tile)
    panels = k.named(k.weights(packed, "panels"), "panels", keep=True)
    kernel.write(PackedAtBuild(panels), packs=False)
    k.finish(op)
    return True


class AmxTileKernel(TileKernel):
    """Tiles of whole registers on the matrix unit, the rows that are left with vectors."""

    def __init__(self, k: KernelBuilder, op: MatmulOp, product: Product, tile: MatrixTile) -> None:
        super().__init__(k, op, product, RegisterTile(tile.length, tile.columns), LANES, None, _WORD)
        self.registers, self.amx_tile = tile, (tile.rows, tile.columns, tile.pixels)
        memory = build(k, worker_memory, i32, tile.length * tile.columns * LANES)
        self.memory = k.named(memory, "memory", keep=True)

    @kernel
    def _tasks(self, panels: Panels, packs: bool) -> None:
        with matrix_unit(self.amx_tile, ROW_BYTES):
            TileKernel._tasks(self, panels, packs)

    def tails(self) -> tuple[int, ...]:
        rows, height = self.product.rows, self.shape.rows
        if isinstance(rows, int) and rows % height == 0:
            return ()
        return tuple(size for size in _TAILS if size < height)

    @kernel
    def tile(self, height: int, vectors: Vectors, place: Place) -> None:
        depth = self.product.depth
        if height != self.shape.rows:
            TileKernel.tile(self, height, vectors, place)
        else:
            *batches, row_step, _, _ = self.steps(self.product.lhs)
            a_at = self.address([*place.batches, place.row], [*batches, row_step])
            shape = self.amx_tile
            clear_accumulators(shape)
            for k in range(size("registers_deep", depth // ROW_BYTES)):
                x_at = a_at + k * ROW_BYTES
                dot_add(shape, self.lhs, x_at, row_step, vectors.buffer, vectors.at + k * (ROW_BYTES * self.width))
            store_accumulators(shape, self.memory)
            self.either_edge(place.column, lambda valid: self._pieces(place, valid))

    @kernel
    def _pieces(self, place: Place, valid: Value | None) -> None:
        """What the registers hold, some rows at a time."""
        tile, count, width = self.registers, piece_of(self.registers), self.registers.columns * LANES
        for piece in range(0, tile.length, count):
            accumulators = load(self.memory, piece * width, width, (count, tile.columns, LANES))
            row = place.row + piece
            self.finish(accumulators, valid, replace(place, row=row))
