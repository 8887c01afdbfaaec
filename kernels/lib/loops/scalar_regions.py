"""What the scalar regions of a fused op ask of the loops around them."""

from __future__ import annotations

from xdsl.ir import Region

from mlirt.dialects.fused.fused_op import IndexOp


def indices_in(region: Region) -> frozenset[int]:
    """The iteration dimensions whose index a scalar region asks for."""
    return frozenset(inner.dim.value.data for inner in region.block.ops if isinstance(inner, IndexOp))


__all__ = ["indices_in"]
