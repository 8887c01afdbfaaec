"""Products with weights of few bits, which stay packed in memory: panels of codes with their scales by blocks."""

from __future__ import annotations

from functools import partial

from xdsl.dialects.builtin import f32

from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.packed_contraction import PackedMatmulOp
from mlirt.dialects.packed_codes import WORD_BITS
from mlirt.dialects.symbolic import product as product_of
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.lib.tile import RegisterTile
from mlirt.kernels.matmul.cpu.packed_tile_kernel import FEW_ROWS, PackedPanels, PackedTileKernel
from mlirt.kernels.matmul.cpu.panel_sources import packing_bytes
from mlirt.kernels.matmul.cpu.panels import pack_blocks, pack_codes
from mlirt.kernels.matmul.cpu.product import Product
from mlirt.kernels.matmul.cpu.row_blocks import lanes_of, row_blocks, tiles_of

OPS = (PackedMatmulOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 20
BYTE = 8

# Panels for each worker, so that none waits long for the last one.
_PANELS = 4
# The table or mask, and a weight.
_OTHER_REGISTERS = 2


def lower(op: PackedMatmulOp, lowering: Lowering) -> bool:
    depth = op.depth
    if op.float4 is not None or lowering.placements[op.output].strides[-1] != 1 or not isinstance(depth, int):
        return False
    if element_of(op.lhs.type) != f32 or accumulator_type(op.epilogue) != f32:
        return False
    if any(lowering.known(value) is None for value in (op.codes, op.scale, op.zero)):
        return False
    bits, block = op.bits.value.data, op.block.value.data
    if bits < BYTE and block * bits % WORD_BITS and block < depth:
        return False  # words of codes belong to one block
    product = Product.of_packed(op, lowering.placements)
    lanes = lanes_of(lowering)
    shape = _few_rows_tile(product, lowering) or next(iter(tiles_of(product, lowering)))
    width = shape.width(lanes)
    k = lowering.kernel("matmul")
    panels = PackedPanels(
        k.weights(lowering.packed(op.codes, partial(pack_codes, bits, width)), "codes"),
        k.weights(
            lowering.packed(op.scale, partial(pack_blocks, width), as_halves=lowering.are_halves(op.scale)), "scale"
        ),
        k.weights(lowering.packed(op.zero, partial(pack_blocks, width)), "zero"),
        zero_is_one=dims(op.zero.type) == (1, 1) != dims(op.scale.type),
        bits=bits,
        block=block,
        depth=depth,
    )
    kernel = PackedTileKernel(k, op, product, shape, lanes, row_blocks(product, shape, lowering), panels)
    if isinstance(product.rows, int) and product.rows <= FEW_ROWS:
        kernel.write_packed(None)
    else:
        tasks = product_of(product.batches) * kernel.panels * kernel.blocks
        memory = k.memory(lowering.placements.scratch(packing_bytes(kernel, tasks)), f32)
        kernel.write_packed(kernel.k.named(memory, "panels", keep=True))
    k.finish(op)
    return True


def _few_rows_tile(product: Product, lowering: Lowering) -> RegisterTile | None:
    """For few rows, known when the engine is built, the widest tile that leaves registers for scales and shifts and
    panels for all workers; None for more rows.
    """
    rows, cpu = product.rows, lowering.target.cpu
    if not isinstance(rows, int) or rows > FEW_ROWS:
        return None
    columns = product.columns
    assert isinstance(columns, int)
    vectors = -(-columns // lanes_of(lowering))
    wanted = max(1, vectors // (_PANELS * lowering.target.threads))
    # Accumulators, scales, shifts and codes of each column of vectors, and an element of each row.
    room = cpu.registers - cpu.registers // 8 - _OTHER_REGISTERS
    fitting = [count for count in (4, 2) if (rows + 3) * count + rows <= room]
    return RegisterTile(rows, next((count for count in fitting if count <= wanted), 1))
