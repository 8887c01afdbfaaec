"""Measures plans on this machine's processors, in turns. The least time counts, as other programs only add to it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import perf_counter_ns
from typing import TYPE_CHECKING

from mlirt.builder.tactics.agreement import Outcome, outcome_of
from mlirt.builder.tactics.cpu_compiler import CpuCompiler, cpu_plan_code, with_features
from mlirt.builder.tactics.device_timer import FAILED, MAX_RATIO_TO_BEST, lock_file
from mlirt.builder.tactics.plan_code import PlanCode
from mlirt.errors import MlirtError
from mlirt.runtime.cpu import CpuDevice
from mlirt.runtime.cpu_program import CpuProgram
from mlirt.runtime.file_lock import locked
from mlirt.runtime.host_cpu import host_model
from mlirt.runtime.shape_binding import bind_shapes

if TYPE_CHECKING:
    from mlirt.builder.tactics.trial import Shape
    from mlirt.dialects.target import Target
    from mlirt.dialects.tensor_op import Array
    from mlirt.runtime.plan_file import Plan

_MARGIN = 0.03
_WARM_UP_NS = 3_000_000
_MAX_WARM_UPS = 50
_ROUNDS_OF_ALL = 3  # in one alone another program may have had the processors
_REPETITIONS = 2  # of a plan whose results are compared
_USUAL_CACHE = 1 << 25  # bytes, where the system does not tell


class CpuTimer:
    """The processors that this process may use, as the target `machine` has them."""

    def __init__(self, machine: Target, rounds: int) -> None:
        self._machine = machine
        self._whole = with_features(machine, machine.special)
        """With the features that only some kernels are made for."""
        self.margin = _MARGIN
        self._rounds = rounds
        features = ",".join(sorted(self._whole.features))
        self.device = f"{host_model()}, vectors of {machine.vector_bits} bits, {features}; {machine.threads} threads"
        self.cache_bytes = _cache_bytes()

    def compiler(self) -> CpuCompiler:
        """Compiles for this machine."""
        return CpuCompiler(self._machine)

    def plan_code(self, codes: Mapping[str, bytes]) -> PlanCode:
        """The code of a plan for this machine."""
        return cpu_plan_code(codes, self._whole)

    def times(
        self, plans: Sequence[Plan], shapes: Sequence[Sequence[Shape]], feeds: Sequence[Sequence[Array]]
    ) -> list[float]:
        """The least of several rounds; who is far behind after some of them is not measured again.

        Other builds on this machine wait meanwhile.
        """
        with locked(lock_file()):
            runs = [_run(*one) for one in zip(plans, shapes, feeds, strict=True)]
            found = [FAILED if run is None else _microseconds(run) for run in runs]
            for number in range(1, self._rounds):
                limit = MAX_RATIO_TO_BEST * min(found, default=FAILED) if number >= _ROUNDS_OF_ALL else FAILED
                for place, run in enumerate(runs):
                    if run is not None and found[place] <= limit:
                        found[place] = min(found[place], _microseconds(run))
        return found

    def outcomes(
        self, plans: Sequence[Plan], shapes: Sequence[Sequence[Shape]], feeds: Sequence[Sequence[Array]]
    ) -> list[Outcome | None]:
        """What the runs of each plan give; None for one that does not run."""
        found: list[Outcome | None] = []
        for one in zip(plans, shapes, feeds, strict=True):
            run = _run(*one)
            found.append(None if run is None else outcome_of([_results(run) for _ in range(_REPETITIONS)]))
        return found


def _run(plan: Plan, shapes: Sequence[Shape], feeds: Sequence[Array]) -> CpuProgram | None:
    """A plan with its memory, after some runs in which it finds out by how many workers it runs best; None for one
    that does not run.
    """
    try:
        # Workers that spin between runs would take the processors from the other plans.
        program = CpuDevice(plan, spin_ms=0).session().prepare(bind_shapes(plan.manifest, tuple(shapes)))
        program.upload(feeds)
        start = perf_counter_ns()
        for _ in range(_MAX_WARM_UPS):
            program.execute()
            if perf_counter_ns() - start > _WARM_UP_NS:
                break
        program.wait()
    except MlirtError:
        return None
    return program


def _microseconds(program: CpuProgram) -> float:
    start = perf_counter_ns()
    program.execute()
    return (perf_counter_ns() - start) / 1e3


def _results(program: CpuProgram) -> list[Array]:
    program.execute()
    return [output.copy() for output in program.download()]


def _cache_bytes() -> int:
    """Bytes of the last cache of a processor, half of which others may use."""
    with suppress(ValueError, OSError, AttributeError):
        if (size := os.sysconf("SC_LEVEL3_CACHE_SIZE")) > 0:
            return size // 2
    return _USUAL_CACHE // 2


__all__ = ["CpuTimer"]
