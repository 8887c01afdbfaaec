"""The network that a refittable plan keeps beside its kernels, as text and weights; running needs neither."""

from __future__ import annotations

from mlirt.runtime.plan_file import Plan

NETWORK = "network.mlir"
WEIGHTS = "network.safetensors"


def is_refittable(plan: Plan) -> bool:
    """Whether the plan has all that is needed to build it again with other weights."""
    return NETWORK in plan.sections and WEIGHTS in plan.sections
