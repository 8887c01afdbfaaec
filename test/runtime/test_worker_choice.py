"""Small networks are run by whoever is quicker in trials, the caller alone or with workers; results are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirt.runtime import cpu, cpu_job, worker_choice, worker_groups
from mlirt.runtime.engine import load
from mlirt.runtime.plan_file import plan_bytes
from mlirt.runtime.python_callers import PythonCallers
from mlirt.runtime.stop_request import StopRequest
from mlirt.runtime.worker_choice import Outcomes, WorkerChoice

TRIAL = 12


@pytest.fixture(autouse=True)
def callers(monkeypatch: pytest.MonkeyPatch) -> PythonCallers:
    """Those of these tests alone."""
    found = PythonCallers()
    monkeypatch.setattr(worker_choice, "CALLERS", found)
    return found


class Machine:
    """Runs take the seconds that they are said to take, and are noted."""

    def __init__(self, together: float, alone: float, size: int = 1000, outcomes: Outcomes | None = None) -> None:
        self.now = 0.0
        self.seconds = {"together": together, "alone": alone, "brief": alone}
        self.seen: list[str] = []
        sides = [self.side(name) for name in self.seconds]
        self.choice = WorkerChoice(*sides, size=size, outcomes=outcomes or Outcomes(), clock=lambda: self.now)

    def side(self, name: str) -> Callable[[], int]:
        def run() -> int:
            self.seen.append(name)
            self.now += self.seconds[name]
            return 0

        return run

    def runs(self, count: int) -> list[str]:
        before = len(self.seen)
        for _ in range(count):
            self.choice()
        return self.seen[before:]


def test_who_was_quicker_in_the_first_runs_has_the_next_ones() -> None:
    slow = Machine(together=40e-6, alone=60e-6)
    assert slow.runs(TRIAL) == ["together"] * 6 + ["alone"] * 6
    assert slow.runs(100) == ["together"] * 100
    assert (slow.choice.is_alone, slow.choice.is_brief) == (False, False)
    quick = Machine(together=60e-6, alone=40e-6)
    quick.runs(TRIAL)
    assert quick.runs(100) == ["alone"] * 100
    assert (quick.choice.is_alone, quick.choice.is_brief) == (True, False)


def test_threads_of_python_wait_for_a_run_of_a_few_microseconds() -> None:
    machine = Machine(together=15e-6, alone=8e-6)
    machine.runs(TRIAL)
    assert machine.runs(10) == ["brief"] * 10
    assert machine.choice.is_brief


def test_threads_of_python_go_on_where_several_make_runs(callers: PythonCallers) -> None:
    machine, shortest = Machine(together=15e-6, alone=8e-6), Machine(together=15e-6, alone=2e-6)
    for one in (machine, shortest):
        one.runs(TRIAL)
    callers.are_many = True
    assert machine.runs(10) == ["alone"] * 10
    assert not machine.choice.is_brief
    assert shortest.runs(10) == ["brief"] * 10


def test_equal_times_leave_the_other_cores_to_others() -> None:
    machine = Machine(together=2**-15, alone=2**-15)
    machine.runs(TRIAL)
    assert machine.choice.is_alone


def test_equal_times_of_longer_runs_leave_them_to_workers() -> None:
    """Others had the cores during the trial: the workers cost nothing, and will help once these are free."""
    busy = Machine(together=2**-12, alone=2**-12)
    busy.runs(TRIAL)
    assert not busy.choice.is_alone
    interrupted = Machine(together=2**-11, alone=2**-12)
    interrupted.runs(TRIAL)
    assert interrupted.choice.is_alone


def test_there_is_a_trial_again_after_a_hundred_runs() -> None:
    machine = Machine(together=60e-6, alone=40e-6)
    machine.runs(TRIAL + 100)
    machine.seconds["together"] = 30e-6  # others have left the cores
    trial = ["together"] * 6 + ["alone"] * 6
    assert machine.runs(TRIAL) == trial
    assert machine.runs(100) == ["together"] * 100
    assert machine.runs(TRIAL) == trial
    assert machine.runs(400) == ["together"] * 400, "the outcome was the same"
    assert machine.runs(TRIAL) == trial
    machine.runs(sum(runs + TRIAL for runs in (1600, 6400, 25_600, 64_000)) + 63_998)
    assert machine.runs(2) == ["together"] * 2, "the most there are in between"
    machine.seconds["together"] = 90e-6
    machine.runs(TRIAL)
    assert machine.runs(100 + TRIAL) == ["alone"] * 100 + trial


def test_shapes_begin_with_the_outcome_of_larger_ones() -> None:
    outcomes = Outcomes()
    Machine(60e-6, 40e-6, 1000, outcomes).runs(TRIAL)
    assert Machine(60e-6, 40e-6, 1000, outcomes).runs(20) == ["alone"] * 20
    larger = Machine(60e-6, 90e-6, 2000, outcomes)
    assert larger.runs(TRIAL) == ["together"] * 6 + ["alone"] * 6
    assert Machine(60e-6, 40e-6, 900, outcomes).runs(20) == ["alone"] * 20
    changed = Machine(30e-6, 40e-6, 900, outcomes)
    assert changed.runs(100 + TRIAL)[100:] == ["together"] * 6 + ["alone"] * 6
    assert Machine(60e-6, 40e-6, 900, outcomes).runs(6) == ["together"] * 6, "the last outcome counts"
    assert Machine(60e-6, 40e-6, 899, outcomes).runs(6) == ["alone"] * 6


def test_long_runs_are_not_tried_on_one_thread() -> None:
    machine = Machine(together=2e-3, alone=1e-3)
    assert machine.runs(3000) == ["together"] * 3000
    outcomes = Outcomes()
    Machine(60e-6, 40e-6, 1000, outcomes).runs(TRIAL)
    grown = Machine(2e-3, 1e-3, 900, outcomes)
    assert grown.runs(100 + TRIAL) == ["alone"] * 100 + ["together"] * TRIAL
    assert Machine(2e-3, 1e-3, 900, outcomes).runs(20) == ["together"] * 20


def test_a_network_that_the_caller_runs_quicker_takes_no_group(
    tiny: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waking two workers that sleep, for 16 KB, takes longer than the work."""
    monkeypatch.setattr(worker_groups, "_groups", {})
    taken: list[cpu_job.Job] = []
    run = cpu.CpuDevice.run

    def counted(device: cpu.CpuDevice, job: cpu_job.Job, stop: StopRequest | None = None) -> int:
        taken.append(job)
        return run(device, job, stop)

    monkeypatch.setattr(cpu.CpuDevice, "run", counted)
    parts = tiny()
    del parts.manifest["outputs"][1:]
    plan = plan_bytes(parts.manifest, parts.sections, parts.weights)
    x = np.random.default_rng(0).standard_normal((1000, 4), np.float32)
    want = load(plan, threads=1).run({"x": x})["y"]
    taken.clear()
    engine = load(plan, threads=3, spin_ms=0)
    for _ in range(3 * TRIAL):
        np.testing.assert_array_equal(engine.run({"x": x})["y"], want)
    assert len(taken) == TRIAL / 2
    for pool in (pool for one in worker_groups._groups.values() for pool in one.pools):  # pyright: ignore[reportPrivateUsage]
        pool.stop()
