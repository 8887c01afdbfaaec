"""Convolutions on Hopper GPUs: warpgroups multiply the pixels of windows by filters."""

from __future__ import annotations

from collections.abc import Mapping

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.kernels.convolution.cuda.group_convolution import build_convolution, work
from mlirt.kernels.lib.cuda.warpgroups.group_unit import HOPPER
from mlirt.kernels.lib.cuda.warpgroups.planes import planes_cost
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    """Microseconds that a convolution takes, about, with each tile."""
    planes = planes_cost(op, lowering)
    return {name: cost + planes for name, cost in HOPPER.estimates(work(op, lowering, HOPPER)).items()}


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    tile = HOPPER.tile(work(op, lowering, HOPPER), lowering.choice(op))
    if tile is None:
        return False
    build_convolution(op, tile, lowering, HOPPER)
    return True
