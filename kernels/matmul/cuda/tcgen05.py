"""Matrix products on Blackwell GPUs of data centres: one thread starts them, accumulators lie in tensor memory."""

from __future__ import annotations

from collections.abc import Mapping

from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.kernels.lib.cuda.tensor_memory.tensor_unit import BLACKWELL
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.matmul.cuda.group_matmul import build_product, work

OPS = (MatmulOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20


def estimates(op: MatmulOp, lowering: Lowering) -> Mapping[str, float]:
    """Microseconds that a product takes, about, with each tile."""
    return BLACKWELL.estimates(work(op, lowering, BLACKWELL))


def lower(op: MatmulOp, lowering: Lowering) -> bool:
    tile = BLACKWELL.tile(work(op, lowering, BLACKWELL), lowering.choice(op))
    if tile is None:
        return False
    build_product(op, tile, lowering, BLACKWELL)
    return True
