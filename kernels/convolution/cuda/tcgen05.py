"""Convolutions on Blackwell GPUs of data centres: pixels of windows times filters, into tensor memory."""

from __future__ import annotations

from collections.abc import Mapping

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.kernels.convolution.cuda.group_convolution import build_convolution, work
from mlirt.kernels.lib.cuda.tensor_memory.tensor_unit import BLACKWELL
from mlirt.kernels.lib.cuda.warpgroups.planes import planes_cost
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    """Microseconds that a convolution takes, about, with each tile."""
    planes = planes_cost(op, lowering)
    return {name: cost + planes for name, cost in BLACKWELL.estimates(work(op, lowering, BLACKWELL)).items()}


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    tile = BLACKWELL.tile(work(op, lowering, BLACKWELL), lowering.choice(op))
    if tile is None:
        return False
    build_convolution(op, tile, lowering, BLACKWELL)
    return True
