"""The workers: they wake from sleep, spin as long as they may, survive more threads than cores and forks."""

import ctypes
import gc
import os
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlirt.errors import InvalidInputError
from mlirt.runtime import worker_groups, worker_pool
from mlirt.runtime.engine import load
from mlirt.runtime.host_cpu import spin_seconds, thread_count
from mlirt.runtime.plan_file import plan_bytes, write_plan
from mlirt.runtime.worker_pool import most_parts

Maker = Callable[[], Any]


def run_many(tiny: Maker, runs: int, pause: float, spin_ms: float | None = None, threads: int = 2) -> None:
    parts = tiny()
    engine = load(plan_bytes(parts.manifest, parts.sections, parts.weights), spin_ms=spin_ms, threads=threads)
    x = np.random.default_rng(0).standard_normal((400, 4), np.float32)
    want = np.cos((2 * x + 1).reshape(-1)[::-1]).reshape(x.shape)
    for _ in range(runs):
        np.testing.assert_allclose(engine.run({"x": x})["y"], want, rtol=1e-6, atol=1e-6)
        time.sleep(pause)


@pytest.mark.parametrize("spin_ms", [0.0, 0.05, 50.0])
@pytest.mark.parametrize("pause", [0.0, 20e-6, 100e-6, 2e-3])
def test_workers_wake_from_spinning_and_from_sleep(tiny: Maker, pause: float, spin_ms: float) -> None:
    run_many(tiny, 100, pause, spin_ms)


class Pools(list[worker_pool.WorkerPool]):
    """Those that engines of the test have made."""


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pools]:
    """Two processors, and no groups of workers yet."""
    found = Pools()
    make = worker_pool.WorkerPool

    def made(*args: Any, **options: Any) -> worker_pool.WorkerPool:
        found.append(make(*args, **options))
        return found[-1]

    monkeypatch.setattr(worker_pool, "processor_count", lambda: 2)
    monkeypatch.setattr(worker_groups, "WorkerPool", made)
    monkeypatch.setattr(worker_groups, "_groups", {})
    yield found
    for pool in found:
        pool.stop()


def sleeps(pool: worker_pool.WorkerPool) -> bool:
    """Whether worker 1 has announced that it sleeps."""
    control: int = pool._control  # pyright: ignore[reportPrivateUsage]
    return bool(ctypes.c_int64.from_address(control + (48 + 16) * 8).value)


def test_an_engine_says_how_long_workers_spin(tiny: Maker, pools: Pools) -> None:
    run_many(tiny, 1, 0.0, spin_ms=600e3)
    time.sleep(0.2)
    assert not sleeps(pools[0])
    run_many(tiny, 1, 0.0, spin_ms=0)
    deadline = time.monotonic() + 30
    while not sleeps(pools[0]) and time.monotonic() < deadline:
        time.sleep(1e-3)
    assert sleeps(pools[0])


def test_a_pool_that_nobody_knows_any_more_lives_as_long_as_its_workers(
    tiny: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They sleep and wake in its memory, by its code."""
    groups: dict[worker_groups.ThreadChoice, worker_groups.WorkerGroups] = {}
    monkeypatch.setattr(worker_groups, "_groups", groups)
    run_many(tiny, 2, 0.0, spin_ms=0.0)
    (pool,) = (weakref.ref(pool) for one in groups.values() for pool in one.pools)
    groups.clear()
    gc.collect()
    kept = pool()
    assert kept is not None
    kept.stop()
    del kept
    deadline = time.monotonic() + 30
    while pool() is not None and time.monotonic() < deadline:
        time.sleep(1e-3)
        gc.collect()
    assert pool() is None


def test_workers_that_would_take_each_others_processors_spin_for_a_moment(
    tiny: Maker, pools: Pools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "processor_count", lambda: 1)
    run_many(tiny, 1, 0.0, spin_ms=600e3)
    deadline = time.monotonic() + 30
    while not sleeps(pools[0]) and time.monotonic() < deadline:
        time.sleep(1e-3)
    assert sleeps(pools[0])


_FORKING = """
import os, sys, numpy as np
from mlirt.runtime.engine import load
engine = load(sys.argv[1], spin_ms=600e3, threads=2)
want = engine.run({"x": np.ones((400, 4), np.float32)})["y"]
child = os.fork()
again = engine.run({"x": np.ones((400, 4), np.float32)})["y"]
assert engine.requests.groups.most_running == 1
assert (again == want).all()
if child:
    assert os.waitpid(child, 0)[1] == 0
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_spinning_workers_hold_up_neither_an_exit_nor_a_fork(tiny: Maker, tmp_path: Path) -> None:
    parts = tiny()
    write_plan(tmp_path / "tiny.plan", parts.manifest, parts.sections, parts.weights)
    command = [sys.executable, "-c", _FORKING, str(tmp_path / "tiny.plan")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.split()) == (0, ["done", "done"]), done.stderr


@pytest.mark.parametrize(("wanted", "option", "expected"), [("", None, None), ("2.5", None, 0.0025), ("2.5", 0, 0.0)])
def test_how_long_workers_spin(
    wanted: str, option: float | None, expected: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLIRT_SPIN_MS", wanted)
    assert spin_seconds(option) == expected


@pytest.mark.parametrize(
    ("wanted", "option"), [("long", None), ("-1", None), ("nan", None), ("1", -1.0), ("1", np.inf)]
)
def test_times_that_make_no_sense(wanted: str, option: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_SPIN_MS", wanted)
    with pytest.raises(InvalidInputError, match="expected milliseconds, 0 to sleep at once"):
        spin_seconds(option)


@pytest.mark.parametrize("threads", [3, 7, 33, 70])
def test_more_threads_than_cores(tiny: Maker, threads: int) -> None:
    run_many(tiny, 50, 0.0, threads=threads)


@pytest.mark.parametrize(("wanted", "expected"), [("1", 1), ("0", None), ("", None), ("many", None), ("100000", None)])
def test_the_number_of_threads(wanted: str, expected: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLIRT_NUM_THREADS", raising=False)
    available = thread_count()
    monkeypatch.setenv("MLIRT_NUM_THREADS", wanted)
    assert thread_count() == (expected or available)


def test_no_launch_has_more_parts_than_slots_are_planned_for() -> None:
    assert [most_parts(threads) for threads in (1, 2, 4, 16, 17, 32, 64)] == [1, 4, 8, 32, 17, 32, 64]
