"""Intervals hold the ratio that samples were made with, as often as they say, and drift of both sides cancels."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from mlirt.tools.lab.interleaving import MIN_SESSIONS, Measured, Run, measure
from mlirt.tools.lab.ratio_statistics import Ratio, expanded_tail, ratio_of, student_quantile

LEVELS = [(0.975, 1, 12.706), (0.975, 2, 4.303), (0.975, 5, 2.571), (0.975, 9, 2.262), (0.95, 20, 1.725)]


@pytest.mark.parametrize(("share", "degrees", "expected"), LEVELS)
def test_quantiles_of_student(share: float, degrees: int, expected: float) -> None:
    assert student_quantile(share, degrees) == pytest.approx(expected, rel=2e-3)
    assert student_quantile(1 - share, degrees) == pytest.approx(-expected, rel=2e-3)


def test_few_sessions_give_wider_intervals() -> None:
    tails = [expanded_tail(0.025, count) for count in (3, 6, 12, 100, 10000)]
    assert tails == sorted(tails)
    assert tails[-1] == pytest.approx(0.025, rel=1e-2)
    assert tails[0] < 0.001


def sessions_of(random: np.random.Generator, ratio: float, count: int = 8, rounds: int = 10) -> list[list[float]]:
    """Rounds with noise of 3 %, a few of them disturbed, and sessions that differ by 2 %."""
    found: list[list[float]] = []
    for _ in range(count):
        session = ratio * math.exp(random.normal(0, 0.02))
        samples = session * np.exp(random.normal(0, 0.03, rounds))
        samples[random.random(rounds) < 0.1] *= 3
        found.append(list(map(float, samples)))
    return found


@pytest.mark.parametrize(("ratio", "verdict"), [(1.25, "faster"), (0.8, "slower")])
def test_a_known_ratio_is_found(ratio: float, verdict: str) -> None:
    for seed in range(20):
        found = ratio_of(sessions_of(np.random.default_rng(seed), ratio))
        assert found.value == pytest.approx(ratio, rel=0.05)
        assert found.verdict == verdict
        assert (found.sessions, found.rounds) == (8, 80)


def test_equal_sides_show_no_difference() -> None:
    found = [ratio_of(sessions_of(np.random.default_rng(seed), 1.0)) for seed in range(200)]
    wrong = [one for one in found if one.verdict != "no difference that could be shown"]
    assert len(wrong) <= 20  # 5 % of 200 are 10; with 20 or more a correct interval would be rare (1 in 400)
    assert len(wrong) >= 1  # an interval that is never wrong is too wide


def test_samples_of_one_session_are_not_taken_for_many() -> None:
    """All rounds of a session share its luck: what counts is the number of sessions."""
    random = np.random.default_rng(0)
    few = ratio_of(sessions_of(random, 1.0, count=4, rounds=200))
    many = ratio_of(sessions_of(random, 1.0, count=40, rounds=20))
    assert few.half_width > 2 * many.half_width


def test_samples_that_say_nothing_are_refused() -> None:
    for sessions in ([], [[1.0]], [[1.0], []]):
        with pytest.raises(ValueError, match="expected two sessions or more"):
            ratio_of(sessions)


def test_when_an_interval_is_narrow_enough() -> None:
    assert Ratio(1.0, 0.995, 1.005, 6, 60).is_narrow(0.01)
    assert not Ratio(1.0, 0.97, 1.03, 6, 60).is_narrow(0.01)
    assert not Ratio(1.05, 1.02, 1.08, 6, 60).is_narrow(0.01)  # 1 is outside, but not by far
    assert Ratio(2.0, 1.8, 2.2, 6, 60).is_narrow(0.01)


class Simulated:
    """Two programs on a machine whose speed walks at random: a random walk of its logarithm, by run."""

    def __init__(self, first: float, second: float, walk: float, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._speed, self._walk = 0.0, walk
        self._costs = (first, second)
        self.opened: list[bool] = []
        self.seconds = 0.0
        self.order: list[int] = []

    def open(self, swapped: bool) -> tuple[Run, Run]:
        self.opened.append(swapped)
        luck = self._random.normal(0, 0.003, 2)
        return self._program(0, luck[0]), self._program(1, luck[1])

    def _program(self, side: int, luck: float) -> Run:
        def run() -> float:
            self._speed += self._random.normal(0, self._walk)
            self.order.append(side)
            took = self._costs[side] * math.exp(self._speed + luck + self._random.normal(0, 0.005))
            self.seconds += took
            return took

        return run

    def clock(self) -> float:
        return self.seconds


def measured(first: float, second: float, walk: float, seed: int, seconds: float = 20.0) -> tuple[Measured, Simulated]:
    machine = Simulated(first, second, walk, seed)
    return measure(machine.open, seconds, 0.01, machine.clock), machine


@pytest.mark.parametrize("seed", range(5))
def test_drift_is_removed_by_taking_turns(seed: int) -> None:
    found, machine = measured(0.0105, 0.01, 0.01, seed)
    blocks = [key for key, _ in itertools.groupby(machine.order)]
    assert len(blocks) > 30
    assert found.ratio.low < 1.05 < found.ratio.high * 1.01
    assert found.ratio.verdict == "faster"
    equal, _ = measured(0.01, 0.01, 0.01, seed + 100)
    assert abs(equal.ratio.value - 1) < 0.02
    # One side after the other, as scripts have it, would have measured the drift.
    random = np.random.default_rng(seed)
    speeds = np.exp(np.cumsum(random.normal(0, 0.01, 2000)))
    assert abs(math.log(np.median(speeds[:1000]) / np.median(speeds[1000:]))) > 2 * equal.ratio.half_width


def test_rounds_go_on_until_the_interval_is_narrow() -> None:
    clear, _ = measured(0.02, 0.01, 0.001, 0)
    assert clear.ratio.sessions == MIN_SESSIONS
    assert clear.first == pytest.approx(2 * clear.second, rel=0.2)
    close, machine = measured(0.01, 0.01, 0.05, 0)
    assert close.ratio.sessions > MIN_SESSIONS
    assert machine.opened[:4] == [False, True, False, True]
    assert machine.seconds < 40


def test_long_runs_are_run_all_the_same() -> None:
    slow, machine = measured(10.0, 10.0, 0.001, 0)
    assert slow.ratio.sessions == MIN_SESSIONS
    assert all(len(one) >= 3 for one in slow.sessions)
    assert machine.order.count(0) == machine.order.count(1)
