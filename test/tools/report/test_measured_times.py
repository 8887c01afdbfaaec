"""Engines that are measured together take turns, and their first runs do not count."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_plan import tiny_parts

from mlirt.runtime.engine import Engine, load
from mlirt.runtime.plan_file import write_plan
from mlirt.tools.report.measured_times import measured_times
from mlirt.tools.report.usual_shapes import usual_binding


def test_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = tiny_parts()
    write_plan(tmp_path / "tiny.plan", parts.manifest, parts.sections, parts.weights)
    engines = [load(tmp_path / "tiny.plan") for _ in range(2)]
    order: list[int] = []

    def profile(self: Engine, feeds: object) -> list[tuple[str, float]]:
        order.append(engines.index(self))
        return [("layer", 1000.0 if len(order) <= 2 else float(len(order)))]

    monkeypatch.setattr(Engine, "profile", profile)
    first, second = measured_times([(one, usual_binding(one.plan.manifest, {})) for one in engines], 3)
    assert order == [0, 1] * 4
    assert [one.median for one in (*first, *second)] == [5.0, 6.0]
    assert (first[0].lower, first[0].upper) == (4.0, 6.0)
