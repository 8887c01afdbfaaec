"""Two plans as two programs to run in turns, each time in engines with memory of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.runtime.engine import Engine
from mlirt.tools.lab.interleaving import Open, Run

if TYPE_CHECKING:
    import numpy as np

    from mlirt.runtime.plan_file import Plan

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def open_both(first: Plan, second: Plan, feeds: Mapping[str, Array]) -> Open:
    """What makes an engine for each; the times are those of the kernels, without transfers of inputs and outputs."""

    def opened(swapped: bool) -> tuple[Run, Run]:
        if swapped:
            other = _run_of(second, feeds)
            return _run_of(first, feeds), other
        return _run_of(first, feeds), _run_of(second, feeds)

    return opened


def _run_of(plan: Plan, feeds: Mapping[str, Array]) -> Callable[[], float]:
    engine = Engine(plan)
    resident = engine.context.run_resident(engine.packed(feeds))

    def run() -> float:
        times = resident.execute()
        return (times.end_compute - times.start_compute) / 1e3

    return run
