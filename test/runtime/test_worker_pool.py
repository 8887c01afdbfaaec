"""The workers: they wake from sleep, survive more threads than cores, and follow MLIRT_NUM_THREADS."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirt.runtime import cpu
from mlirt.runtime.engine import load
from mlirt.runtime.host_cpu import thread_count
from mlirt.runtime.plan_file import plan_bytes

Maker = Callable[[], Any]


def run_many(tiny: Maker, runs: int, pause: float) -> None:
    parts = tiny()
    engine = load(plan_bytes(parts.manifest, parts.sections, parts.weights))
    x = np.random.default_rng(0).standard_normal((100, 4), np.float32)
    want = np.cos((2 * x + 1).reshape(-1)[::-1]).reshape(x.shape)
    for _ in range(runs):
        np.testing.assert_allclose(engine.run({"x": x})["y"], want, rtol=1e-6, atol=1e-6)
        time.sleep(pause)


@pytest.mark.parametrize("pause", [0.0, 20e-6, 100e-6, 2e-3])
def test_workers_wake_from_spinning_and_from_sleep(tiny: Maker, pause: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "thread_count", lambda: 2)
    run_many(tiny, 100, pause)


@pytest.mark.parametrize("threads", [3, 7])
def test_more_threads_than_cores(tiny: Maker, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "thread_count", lambda: threads)
    run_many(tiny, 50, 0.0)


@pytest.mark.parametrize(("wish", "expected"), [("1", 1), ("0", None), ("", None), ("many", None), ("100000", None)])
def test_the_number_of_threads(wish: str, expected: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLIRT_NUM_THREADS", raising=False)
    available = thread_count()
    monkeypatch.setenv("MLIRT_NUM_THREADS", wish)
    assert thread_count() == (expected or available)
