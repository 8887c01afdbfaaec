"""How long workers spin, by a clock of the test: pauses between runs, quotas and who else wants to run decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlirt.runtime.spin_policy import SpinPolicy, runnable_elsewhere


def policy(waiting: int = 0, *, is_limited: bool = False, threads: int = 2) -> SpinPolicy:
    return SpinPolicy(2, lambda: waiting, is_limited=is_limited, threads=threads)


def spun(one: SpinPolicy, pause: float, runs: int = 20, wanted: float | None = None) -> float:
    """The seconds that workers spin after the last of some runs with pauses between them."""
    granted = now = 0.0
    for _ in range(runs):
        granted = one.begin(now, wanted)
        now += 1e-4
        one.end(now)
        now += pause
    return granted


def test_runs_that_come_rarely_are_not_waited_for() -> None:
    assert spun(policy(), 0.1) <= 1e-3  # 50 ms in vain each time before


def test_a_first_run_is_waited_for_a_moment() -> None:
    assert spun(policy(), 0.0, runs=1) == 1e-3


@pytest.mark.parametrize("pause", [1e-5, 1e-4, 1e-3, 4e-3])
def test_workers_are_awake_for_runs_that_come_often(pause: float) -> None:
    granted = spun(policy(), pause)
    assert 2 * pause < granted <= 50e-3


def test_a_burst_after_a_break_is_noticed() -> None:
    one = policy()
    spun(one, 0.1)
    assert spun(one, 1e-4) >= 1e-3


def test_a_quota_counts_spinning() -> None:
    assert spun(policy(is_limited=True), 4e-3) <= 200e-6


def test_other_processes_that_wait_for_processors_get_them() -> None:
    assert spun(policy(10**6), 4e-3) <= 50e-6


def test_more_threads_than_processors_hardly_spin() -> None:
    assert spun(policy(threads=3), 4e-3) <= 50e-6
    assert spun(policy(threads=3), 4e-3, wanted=600.0) <= 50e-6


@pytest.mark.parametrize("wanted", [0.0, 0.5, 600.0])
def test_what_a_caller_sets_counts(wanted: float) -> None:
    assert spun(policy(10**6, is_limited=True), 0.1, wanted=wanted) == wanted


@pytest.mark.parametrize(("text", "expected"), [("3.03 1.92 1.07 5/113 11114\n", 3), ("", 0), ("1 2 3 x/y 4", 0)])
def test_threads_of_this_process_are_no_others(tmp_path: Path, text: str, expected: int) -> None:
    (tmp_path / "loadavg").write_text(text, encoding="ascii")
    for number, state in enumerate("RSRD"):
        (tmp_path / "task" / str(number)).mkdir(parents=True)
        (tmp_path / "task" / str(number) / "stat").write_text(f"{number} (a name) R) {state} 1 2", encoding="ascii")
    (tmp_path / "task" / "ended").mkdir()
    assert runnable_elsewhere(str(tmp_path / "loadavg"), str(tmp_path / "task")) == expected
    assert runnable_elsewhere(str(tmp_path / "none"), str(tmp_path / "task")) == 0
