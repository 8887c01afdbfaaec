"""The times of layers are medians: a run that something disturbed does not decide what a launch costs."""

from __future__ import annotations

import pytest

from mlirt.tools.layer_report import profile_json, profile_lines


def test_one_slow_run_changes_no_share() -> None:
    usual = [("a", 1.0), ("b", 3.0)]
    records = profile_json([usual, usual, [("a", 500.0), ("b", 3.0)]])
    assert records[0] == {"count": 3}
    assert [(one["medianMs"], one["percentage"]) for one in records[1:]] == [(1.0, 25.0), (3.0, 75.0)]
    assert (records[1]["minMs"], records[1]["maxMs"]) == (1.0, 500.0)
    assert records[1]["averageMs"] == pytest.approx(502 / 3)
    total = profile_lines(records)[-1].split()
    assert float(total[3]) == 4.0


def test_quartiles_tell_how_far_runs_lie_apart() -> None:
    records = profile_json([[("a", ms)] for ms in (1.0, 2.0, 3.0, 4.0, 500.0)])
    assert (records[1]["lowerQuartileMs"], records[1]["medianMs"], records[1]["upperQuartileMs"]) == (2.0, 3.0, 4.0)
    one_run = profile_json([[("a", 7.0)]])[1]
    assert (one_run["lowerQuartileMs"], one_run["upperQuartileMs"]) == (7.0, 7.0)
