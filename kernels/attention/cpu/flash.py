"""Flash attention in float32 on register tiles: the scores of a few queries at a time stay in the cache of a core."""

from __future__ import annotations

from xdsl.dialects.builtin import f32

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.kernel.worker import slots_for
from mlirt.dialects.symbolic import ceil_div, product
from mlirt.dialects.tensor_types import element_of
from mlirt.kernels.attention.cpu.flash_kernel import CpuFlashKernel
from mlirt.kernels.attention.cpu.shape import blocks_per_head, tile_for
from mlirt.kernels.attention.walks import Walks
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (AttentionOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 10


def lower(op: AttentionOp, lowering: Lowering) -> bool:
    walks, columns = Walks.of(op, lowering), op.columns
    types = {element_of(value.type) for value in (op.query, op.key, op.values, op.output)}
    if types != {f32} or op.epilogue is not None or op.score.block.args[0].type != f32 or not isinstance(columns, int):
        return False
    if (walks.key.depth, walks.values.column, walks.out.column) != (1, 1, 1):
        return False
    if op.widths is not None:
        return False
    cpu = lowering.target.cpu
    tile = tile_for(op.queries, columns, cpu)
    if tile is None:
        return False
    heads = product(op.batch)
    blocks = blocks_per_head(heads, ceil_div(op.queries, tile.rows), lowering.target.threads)
    k = lowering.kernel("attention")
    kernel = CpuFlashKernel(k, op, walks, tile, cpu.vector_bits // 32, blocks)
    kernel.write(lowering.placements.scratch(slots_for(heads * blocks) * kernel.scratch_elements * 4))
    k.finish(op)
    return True
