"""The real load generator drives a system in each scenario, and an accuracy test sees what is lost or wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlperf.load import SCENARIOS, answer_arrays, read_summary
from mlperf.session import Session, Setup, expected_of
from mlperf_doubling import DOUBLING, Doubling
from numpy import dtype, float32

pytest.importorskip("mlperf_loadgen", reason="needs the load generator: pip install 'mlirt[mlperf]', make test-mlperf")

KIND = {"y": (dtype(float32), (3,))}


def session(folder: Path, scenario: str, system: Doubling, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr("mlperf.session.opened", lambda name, request: system)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    return Session(Setup(DOUBLING, "mlirt", scenario, folder, batch=4, streams=3, runs_at_once=system.runs_at_once))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_scenario_is_measured(scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = session(tmp_path, scenario, Doubling(2 if scenario == "Offline" else 1), monkeypatch)
    summary = one.measure(tmp_path / "logs", 0.2, rate=200.0)
    assert summary.entries["Scenario"] == scenario
    assert 0 < summary.percentile(50) <= summary.percentile(99) < 10
    assert read_summary(tmp_path / "logs").entries == summary.entries
    assert (tmp_path / "logs" / "mlperf_log_detail.txt").stat().st_size > 1000
    if scenario in ("Offline", "Server"):
        assert summary.samples_per_second > 10
    one.close()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_sample_is_answered_once_and_right(scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = session(tmp_path, scenario, Doubling(), monkeypatch)
    check = one.check(tmp_path / "logs", expected_of(one.setup), rate=500.0)
    asked = 18 if scenario == "MultiStream" else 16  # three a query
    assert (check.asked, check.answered, check.lost, check.wrong) == (asked, asked, 0, 0)
    assert len(check.errors) == asked


def test_a_wrong_answer_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = session(tmp_path, "SingleStream", Doubling(wrong=5.0), monkeypatch)
    check = one.check(tmp_path / "logs", expected_of(one.setup))
    assert (check.lost, check.wrong) == (0, 1)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_batch_that_fails_ends_the_test_with_its_error(
    scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = session(tmp_path, scenario, Doubling(failing=5.0), monkeypatch)
    with pytest.raises(RuntimeError, match="5 is refused"):
        one.check(tmp_path / "logs", expected_of(one.setup), rate=500.0)


@pytest.mark.parametrize("size", [0, 8, 16])
def test_an_answer_of_another_size_is_none(size: int) -> None:
    with pytest.raises(ValueError, match=f"an answer has {size} bytes"):
        answer_arrays(bytes(size), KIND)
