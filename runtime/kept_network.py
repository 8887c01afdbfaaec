"""The network that a plan keeps beside its kernels, as text, and refittable ones as weights; running needs neither."""

from __future__ import annotations

from mlirt.atomic_file import Bytes
from mlirt.runtime.plan_file import Plan

NETWORK = "network.mlir"
WEIGHTS = "network.safetensors"


def is_refittable(plan: Plan) -> bool:
    """Whether the plan has all that is needed to build it again with other weights."""
    return NETWORK in plan.sections and WEIGHTS in plan.sections


def network_text(plan: Plan) -> str:
    """The network as it was given, as IR; empty where the plan was built not to tell."""
    return bytes(plan.sections[NETWORK]).decode() if NETWORK in plan.sections else ""


def without_network(plan: Plan) -> dict[str, Bytes]:
    """The sections of a plan that is to tell nothing of its network; those of a refittable one as they are."""
    if is_refittable(plan):
        return dict(plan.sections)
    return {name: section for name, section in plan.sections.items() if name != NETWORK}
