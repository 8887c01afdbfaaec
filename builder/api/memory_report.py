"""What a build and an engine take of memory, in the lines of TensorRT's log (tensorrt-features.md#18.2, 18.3)."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from mlirt.errors import MlirtError
from mlirt.runtime.api.device_memory import largest_arena

if TYPE_CHECKING:
    from mlirt.runtime.plan_file import Plan
    from mlirt.tensorrt.reporting import Reporter

_MIB = 1 << 20


@contextmanager
def memory_reported(step: str, target: str, reporter: Reporter) -> Generator[None]:
    """Say behind a step how the memory of the process, and that of the GPU which is used, have changed."""
    before = _used(target)
    yield
    cpu, gpu = _used(target)
    reporter.info(
        f"[MemUsageChange] {step}: CPU {cpu - before[0]:+d}, GPU {gpu - before[1]:+d}, now: CPU {cpu}, GPU {gpu} (MiB)"
    )


def report_memory(plan: Plan, reporter: Reporter) -> None:
    """Say what an engine will keep, and what a context needs for the largest shapes of the profiles.

    Persistent memory is that of weights and code: the device's for a GPU, else the host's.
    """
    kept = sum(len(content) for content in plan.sections.values())
    kept += sum(array.nbytes for array in plan.weights.values())
    on_device = cast("Mapping[str, object]", plan.manifest_json["target"])["kind"] == "cuda"
    reporter.info(f"Total Host Persistent Memory: {0 if on_device else kept}")
    reporter.info(f"Total Device Persistent Memory: {kept if on_device else 0}")
    try:
        reporter.info(f"Total Scratch Memory: {largest_arena(plan.manifest)}")
    except MlirtError as why:  # an assertion refuses the largest shapes
        reporter.info(f"Total Scratch Memory: not known, as the largest shapes of the profiles are refused: {why}")


def _resident_bytes() -> int:
    """Of this process, as Linux tells it; 0 where nothing does."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _used(target: str) -> tuple[int, int]:
    """MiB of this process, and of the GPU; 0 where there is none."""
    resident = _resident_bytes()
    if target == "cpu":
        return resident // _MIB, 0
    from mlirt.runtime.cuda_driver import open_driver

    try:
        return resident // _MIB, open_driver().used_memory() // _MIB
    except MlirtError:
        return resident // _MIB, 0
