"""Non-maximum suppression: the fused op has the operands of the layer."""

from __future__ import annotations

from mlirt.dialects.fused.suppress import SuppressOp as FusedSuppressOp
from mlirt.dialects.trt.suppress import SuppressOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions


def convert_suppress(at: Conversion) -> None:
    """`trt.suppress` becomes `fused.suppress`."""
    op = at.op
    assert isinstance(op, SuppressOp)
    at.replace(at.emit(FusedSuppressOp(op.boxes, op.allowed, op.limit, op.threshold)))


CONVERSIONS: Conversions = {SuppressOp: convert_suppress}
