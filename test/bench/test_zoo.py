"""The table of the zoo: sorted by the worst, means of what was measured, what is wrong at its end."""

from __future__ import annotations

import math

import zoo


def _row(case: str, **times: float) -> zoo.Row:
    return zoo.Row(case, times, 1e-3, 2e-3)


def test_the_faster_peer_counts() -> None:
    row = _row("a.1", engine=2.0, captured=2.5, eager=8.0, compile=3.0)
    assert row.ratio == 1.5
    assert row.kept == 0.8
    assert _row("a.1", engine=2.0).ratio == math.inf


def test_the_worst_comes_first() -> None:
    lost = zoo.Row("c.1", wrong="not ready in time")
    lines = zoo.table([_row("a.1", engine=1.0, eager=4.0), _row("b.1", engine=1.0, eager=1.0), lost]).splitlines()
    assert [line.split(" ")[1] for line in lines[2:5]] == ["b.1", "a.1", "c.1"]
    assert lines[4].endswith("not ready in time")
    assert lines[5] == "2 cases, geometric mean 2.00, least 1.00, 0 below 1.0"
