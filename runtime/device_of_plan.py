"""The device that a plan is opened on, and whether it is here."""

import logging

from mlirt.errors import PlanError
from mlirt.runtime.device import Device
from mlirt.runtime.lent_memory import Allocator
from mlirt.runtime.plan_file import Plan, gpu_here
from mlirt.runtime.plan_variants import refuse
from mlirt.runtime.worker_groups import ThreadChoice


def check_machine(plan: Plan) -> None:
    """Say which plan of several was chosen; raise PlanError where none of them runs here."""
    if plan.variants is None:
        return
    found = plan.variants
    chosen = next(one for one in found.machines if one.name == found.chosen)
    if chosen.rank_here(gpu_here) is None and (chosen.kind == "cpu" or driver_is_here()):
        raise refuse(found.machines, gpu_here)
    logging.getLogger("mlirt").info("mlirt: the plan has code for %s: %s", ", ".join(found.names), found.chosen)


def driver_is_here() -> bool:
    """Whether there is a CUDA driver."""
    from mlirt.runtime.cuda_driver import open_driver

    try:
        open_driver()
    except PlanError:
        return False
    return True


def device_of(
    plan: Plan, spin_ms: float | None, choice: ThreadChoice, allocator: Allocator | None, ordinal: int
) -> Device:
    """The device of a plan's kind, with its code and weights; `ordinal` says which GPU."""
    if plan.manifest.target.kind == "cuda":
        from mlirt.runtime.cuda import CudaDevice

        return CudaDevice(plan, allocator=allocator, ordinal=ordinal)
    from mlirt.runtime.cpu import CpuDevice

    return CpuDevice(plan, spin_ms, choice, allocator)
