"""A context with the weights of another: what is packed for a trial changes no names in the build."""

from __future__ import annotations

from mlirt.dialects.context import RtContext
from mlirt.dialects.registry import register_dialects


def apart(ctx: RtContext) -> RtContext:
    """A context with the same weights: what calibration packs must not change the names of what the build packs."""
    own = RtContext()
    register_dialects(own)
    own.weights.share(ctx.weights)
    return own
