"""Tactics that are measured on a GPU: right results, the same plan from the same times, branches side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from branching_network import branching_network
from repeated_runs import differing_runs
from small_network import network

import mlirt
from mlirt.builder.tactics.timing_cache import TimingCache

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_the_same_times_give_the_same_plan(precision: str, tmp_path: Path) -> None:
    cache = tmp_path / "times"
    for name in ("first", "second"):
        mlirt.compile(network(), "cuda", precision, timing_cache=cache).save(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    assert len(TimingCache.load(cache)) > 0


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("fp16", 2e-2)])
def test_branches_side_by_side_give_what_they_give_in_turn(precision: str, tolerance: float) -> None:
    x = np.random.default_rng(3).standard_normal((1, 32, 20, 20)).astype(np.float32)
    (want,) = mlirt.compile(branching_network(), target="reference").run({"x": x}).values()
    engine = mlirt.compile(branching_network(), "cuda", precision)
    (found,) = engine.run({"x": x}).values()
    np.testing.assert_allclose(found.astype(np.float32), want, atol=tolerance * float(np.abs(want).max()))
    assert differing_runs(engine, {"x": x}, 200) == []
