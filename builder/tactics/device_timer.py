"""Measures plans on the CUDA device, in turns, so that what slows the device down hits all of them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol

from mlirt.builder.tactics.agreement import Outcome, outcome_of
from mlirt.builder.tactics.early_compiler import EarlyCompiler, cuda_plan_code
from mlirt.builder.tactics.sampled_parts import sampled_parts
from mlirt.errors import MlirtError
from mlirt.runtime.cuda import CudaDevice
from mlirt.runtime.cuda_memory import DeviceBlock
from mlirt.runtime.cuda_program import CudaProgram
from mlirt.runtime.driver_interface import DeviceError, Handle
from mlirt.runtime.file_lock import locked
from mlirt.runtime.shape_binding import bind_shapes

if TYPE_CHECKING:
    from mlirt.builder.cubin import Cubin
    from mlirt.builder.tactics.plan_code import Compiler, PlanCode
    from mlirt.builder.tactics.trial import Shape
    from mlirt.dialects.tensor_op import Array
    from mlirt.runtime.driver_interface import Driver
    from mlirt.runtime.plan_file import Plan

MAX_RATIO_TO_BEST = 3.0  # times the best of the first round
_WARM_UP_MS = 30.0
_MAX_WARM_UPS = 1000
FAILED = float("inf")
_REPETITIONS = 4  # of a plan whose results are compared


class Timer(Protocol):
    """Something that measures plans."""

    device: str
    """What is measured on: times of one device say nothing about another."""

    cache_bytes: int
    """What a run may touch so that the next one still finds it in the cache."""

    margin: float
    """How much faster, as a part of its time, another tactic has to be than the one that the estimates choose."""

    def compiler(self) -> Compiler:
        """What compiles kernels for it."""
        ...

    def plan_code(self, codes: Mapping[str, Any]) -> PlanCode:
        """The code of a plan that it can run, from what the compiler gave for each of its kernels by name."""
        ...

    def times(
        self, plans: Sequence[Plan], shapes: Sequence[Sequence[Shape]], feeds: Sequence[Sequence[Array]]
    ) -> list[float]:
        """The microseconds of one run of each plan at these shapes; infinity for one that does not run."""
        ...

    def outcomes(
        self, plans: Sequence[Plan], shapes: Sequence[Sequence[Shape]], feeds: Sequence[Sequence[Array]]
    ) -> list[Outcome | None]:
        """What several runs of each plan give, with other contents of caches; None for one that does not run."""
        ...


class DeviceTimer:
    """The device of a driver."""

    def __init__(self, driver: Driver, architecture: str, rounds: int) -> None:
        self._driver = driver
        self._rounds = rounds
        self.margin = 0.0
        self.device = driver.describe()
        self._architecture = architecture
        # Either half of the processors keeps what it reads in its own half of the cache.
        self.cache_bytes = driver.cache_bytes() // 2
        self._is_warm = False

    def compiler(self) -> EarlyCompiler:
        """Compiles for the architecture of the device while other kernels are being lowered."""
        return EarlyCompiler(self._architecture)

    def plan_code(self, codes: Mapping[str, Mapping[str, Cubin]]) -> PlanCode:
        """The code of a plan for the architecture of the device."""
        return cuda_plan_code(codes, self._architecture)

    def times(
        self, plans: Sequence[Plan], shapes: Sequence[Sequence[Shape]], feeds: Sequence[Sequence[Array]]
    ) -> list[float]:
        """Medians of several rounds; who is far behind after the first one is not measured again.

        Other builds on this machine wait meanwhile.
        """
        with locked(lock_file()):
            return self._times(plans, shapes, feeds)

    def outcomes(
        self, plans: Sequence[Plan], shapes: Sequence[Sequence[Shape]], feeds: Sequence[Sequence[Array]]
    ) -> list[Outcome | None]:
        """What the runs of each plan give: the first behind caches that hold what was uploaded, the next ones behind
        caches that hold something else, the last directly behind another.
        """
        with locked(lock_file()):
            sweep = DeviceBlock(self._driver, 2 * self._driver.cache_bytes())
            return [self._outcome(*one, sweep) for one in zip(plans, shapes, feeds, strict=True)]

    def _outcome(
        self, plan: Plan, shapes: Sequence[Shape], feeds: Sequence[Array], sweep: DeviceBlock
    ) -> Outcome | None:
        run = _Run.of(self._driver, plan, shapes, feeds)
        if run is None:
            return None
        results: list[list[Array]] = []
        for number in range(_REPETITIONS):
            swept = sweep if 0 < number < _REPETITIONS - 1 else None
            results.append(run.results(swept, number))
        return outcome_of(results)

    def _times(
        self, plans: Sequence[Plan], shapes: Sequence[Sequence[Shape]], feeds: Sequence[Sequence[Array]]
    ) -> list[float]:
        runs = [_Run.of(self._driver, plan, of, arrays) for plan, of, arrays in zip(plans, shapes, feeds, strict=True)]
        self._warm_up(runs)
        found: list[list[float]] = [[] for _ in runs]
        for number in range(self._rounds):
            limit = MAX_RATIO_TO_BEST * min((times[0] for times in found if times), default=FAILED)
            for run, times in zip(runs, found, strict=True):
                if run is not None and (number == 0 or times[0] <= limit):
                    times.append(run.microseconds())
        return [median(times) if times else FAILED for times in found]

    def _warm_up(self, runs: Sequence[_Run | None]) -> None:
        """Let the clocks rise, and every kernel run once."""
        alive = [run for run in runs if run is not None]
        spent = sum(run.microseconds() for run in alive)
        for _ in range(_MAX_WARM_UPS if alive and not self._is_warm else 0):
            if spent >= _WARM_UP_MS * 1e3:
                break
            spent += alive[0].microseconds()
        self._is_warm = True


def lock_file() -> Path:
    """One for each user: a file of another user could not be opened."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir()) / f"mlirt-{user}-timing.lock"


class _Run:
    """A plan with its memory on the device."""

    def __init__(self, driver: Driver, program: CudaProgram, stream: Handle) -> None:
        self._driver = driver
        self._program = program
        self._stream = stream
        self._events = [driver.new_event(), driver.new_event()]

    def __del__(self) -> None:
        with suppress(DeviceError, AttributeError):
            for event in self._events:
                self._driver.free_event(event)

    @staticmethod
    def of(driver: Driver, plan: Plan, shapes: Sequence[Shape], feeds: Sequence[Array]) -> _Run | None:
        """None for a plan that the device refuses, for example because its kernels want too much shared memory."""
        try:
            session = CudaDevice(plan, driver).session()
            program = session.prepare(bind_shapes(plan.manifest, tuple(shapes)))
            program.upload(feeds)
            program.execute()
            program.wait()
        except MlirtError:
            return None
        return _Run(driver, program, session.stream)

    def results(self, sweep: DeviceBlock | None, byte: int) -> list[Array]:
        """The outputs of one run, of large ones samples; before it the memory to sweep the caches with is filled with a
        byte.
        """
        if sweep is not None:
            self._driver.fill(sweep.address, sweep.size, byte, self._stream)
        self._program.execute()
        if sweep is None:
            self._program.execute()
        return self._program.download_parts(sampled_parts)

    def microseconds(self) -> float:
        """The time of one run."""
        start, end = self._events
        self._driver.record(start, self._stream)
        self._program.execute()
        self._driver.record(end, self._stream)
        self._driver.synchronize(self._stream)
        return self._driver.elapsed_ms(start, end) * 1e3
