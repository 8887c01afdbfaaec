"""Matrix products on Hopper GPUs: warpgroups multiply, with accumulators in registers."""

from __future__ import annotations

from collections.abc import Mapping

from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.kernels.lib.cuda.warpgroups.group_unit import HOPPER
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.matmul.cuda.group_matmul import build_product, work

OPS = (MatmulOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20


def estimates(op: MatmulOp, lowering: Lowering) -> Mapping[str, float]:
    """Microseconds that a product takes, about, with each tile."""
    return HOPPER.estimates(work(op, lowering, HOPPER))


def lower(op: MatmulOp, lowering: Lowering) -> bool:
    tile = HOPPER.tile(work(op, lowering, HOPPER), lowering.choice(op))
    if tile is None:
        return False
    build_product(op, tile, lowering, HOPPER)
    return True
