"""The engine of a plan that was just built, or built before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.builder.host import gpu_is_here
from mlirt.runtime.engine import Engine
from mlirt.runtime.host_cpu import runs_here

if TYPE_CHECKING:
    from mlirt.builder.config.build_config import BuildConfig
    from mlirt.runtime.plan_file import Plan


def opened(plan: Plan, target: str, config: BuildConfig | None = None) -> Engine:
    """The engine of a plan on a device of this machine.

    One for a GPU where there is none, or for another processor than this one, can be saved for another machine.
    """
    machine = plan.manifest.target
    waits = not gpu_is_here() if target == "cuda" else not runs_here(machine.triple, machine.features)
    if config is None:
        return Engine(plan, waits=waits)
    return Engine(
        plan,
        config.spin_ms,
        shape_cache_mb=config.shape_cache_mb,
        threads=config.threads,
        streams=config.streams,
        waits=waits,
    )
