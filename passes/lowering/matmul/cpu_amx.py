"""Int8 products with constants on the matrix unit of x86 processors: rows in registers by panels of columns."""

from __future__ import annotations

import math
from functools import partial

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.kernel.amx import (
    AMX,
    LANES,
    ROW_BYTES,
    AmxBeginOp,
    AmxClearOp,
    AmxDotAddOp,
    AmxEndOp,
    AmxStoreOp,
)
from mlirt.dialects.kernel.features import need_features
from mlirt.dialects.kernel.tile_loads import TileLoadOp
from mlirt.dialects.kernel.worker import WorkerMemoryOp
from mlirt.passes.lowering.convolution.cpu_amx_choice import MatrixTile, choose_matrix_tile, piece_of
from mlirt.passes.lowering.kernel_builder import KernelBuilder
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.matmul.cpu_panel_sources import PackedAtBuild
from mlirt.passes.lowering.matmul.cpu_panels import batch_steps, pack_operand
from mlirt.passes.lowering.matmul.cpu_product import Product
from mlirt.passes.lowering.matmul.cpu_tile_choice import TileShape
from mlirt.passes.lowering.matmul.cpu_tile_kernel import Panels, Place, TileKernel, Vectors
from mlirt.passes.lowering.matmul.cpu_tiles import multiplies_int8

OPS = (MatmulOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 30

_WORD = 4
# Fewer rows are bound by the memory that the weights come from; a number that the run tells is taken for this one.
_LEAST_ROWS, _USUAL_ROWS = 12, 128
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
    if rows < _LEAST_ROWS or columns == 1 or depth % ROW_BYTES or product.lhs.depth != 1:
        return False
    tile, _ = choose_matrix_tile(rows, math.ceil(columns / LANES), ROW_BYTES)
    packed = lowering.packed(
        op.rhs, partial(pack_operand, bool(op.transpose_rhs.value.data), tile.columns * LANES, _WORD)
    )
    product = Product.of(op, lowering.placements, batch_steps(packed.array.shape))
    k = lowering.kernel("matmul")
    need_features(k.function, AMX | {"avx512vnni"} & lowering.target.special)
    kernel = AmxTileKernel(k, op, product, tile)
    panels = kernel.named(k.weights(packed, "panels"), "panels")
    kernel.write(PackedAtBuild(panels), packs=False)
    k.finish(op)
    return True


class AmxTileKernel(TileKernel):
    """Tiles of whole registers on the matrix unit, the rows that are left with vectors."""

    def __init__(self, k: KernelBuilder, op: MatmulOp, product: Product, tile: MatrixTile) -> None:
        super().__init__(k, op, product, TileShape(tile.length, tile.columns), LANES, None, _WORD)
        self.registers = tile

    def write(self, panels: Panels, packs: bool) -> None:
        k, tile = self.k, self.registers
        memory = k.value(WorkerMemoryOp(i32, tile.length * tile.columns * LANES))
        self.memory = self.named(memory, "memory")
        k.insert(AmxBeginOp(tile.rows, tile.columns, tile.pixels, ROW_BYTES))
        super().write(panels, packs)
        k.insert(AmxEndOp())

    def tails(self) -> tuple[int, ...]:
        rows, height = self.product.rows, self.shape.rows
        if isinstance(rows, int) and rows % height == 0:
            return ()
        return tuple(size for size in _TAILS if size < height)

    def tile(self, height: int, vectors: Vectors, place: Place) -> None:
        if height != self.shape.rows:
            super().tile(height, vectors, place)
            return
        k, tile, lhs, depth = self.k, self.registers, self.product.lhs, self.product.depth
        *batches, row_step, _, _ = self.steps(lhs)
        at = self.named(self.address([*place.batches, place.row], [*batches, row_step]), "a_at")
        step, line = k.index(row_step), ROW_BYTES * self.width
        k.insert(AmxClearOp(tile.rows * tile.columns))

        def add(number: SSAValue) -> None:
            x_at = k.add(at, k.mul(number, ROW_BYTES))
            w_at = k.add(vectors.at, k.mul(number, line))
            k.insert(AmxDotAddOp(self.lhs, x_at, step, vectors.buffer, w_at, tile.rows, tile.columns, tile.pixels))

        k.count(k.constant(0), self.size("registers_deep", depth // ROW_BYTES), 1, "k", add)
        k.insert(AmxStoreOp(self.memory, tile.rows, tile.columns, tile.pixels))
        if self.exact:
            self._pieces(place, None)
        else:
            self.either_edge(place.column, lambda valid: self._pieces(place, valid))

    def _pieces(self, place: Place, valid: SSAValue | None) -> None:
        """What the registers hold, some rows at a time."""
        k, tile = self.k, self.registers
        size, width = piece_of(tile), tile.columns * LANES

        def piece(start: SSAValue) -> None:
            shape = (size, tile.columns, LANES)
            sums = k.value(TileLoadOp(self.memory, k.mul(start, width), k.constant(width), shape, None))
            self.finish(self.named(sums, "sums"), valid, self.moved(place, k.add(place.row, start)))

        k.count(k.constant(0), k.constant(tile.length), size, "piece", piece)
