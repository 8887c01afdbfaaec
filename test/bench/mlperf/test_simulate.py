"""Server load on an engine that only sleeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlperf.load import LoadSettings
from mlperf.simulate import SleepingSystem, Times, simulated, sleeping_samples

pytest.importorskip("mlperf_loadgen", reason="pip install 'mlirt[mlperf]'")


def test_batches_grow_where_one_by_one_would_be_too_slow(tmp_path: Path) -> None:
    """At 10 ms a batch 500 queries a second need batches of at least five."""
    system = SleepingSystem(Times(0.01, 0.0), 2, 16)
    load = LoadSettings("Server", seconds=1.0, rate=500.0, latency=1.0)
    summary = simulated(system, sleeping_samples(system, 8, 64), (1, 2, 4, 8, 16, 32, 64, 128), 0.0, load, tmp_path)
    assert summary.is_valid
    assert summary.percentile(99) >= 0.01
    assert sum(system.sizes) >= summary.asked
    assert max(system.sizes) >= 4


def test_an_engine_that_is_too_slow_is_no_valid_result(tmp_path: Path) -> None:
    load = LoadSettings("Server", seconds=0.5, rate=400.0, latency=0.05)
    system = SleepingSystem(Times(0.0, 0.01), 2, 16)
    summary = simulated(system, sleeping_samples(system, 8, 64), (1, 2, 4), 0.0, load, tmp_path)
    assert not summary.is_valid
    assert summary.percentile(99) > 0.05
