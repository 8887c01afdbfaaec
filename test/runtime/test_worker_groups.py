"""Groups of workers: runs side by side, no lock held while kernels run, turns in the order of arrival, and forks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_plan import compile_ir

from mlirt.errors import InvalidInputError
from mlirt.runtime import worker_groups
from mlirt.runtime.engine import Engine, load
from mlirt.runtime.host_memory import aligned_empty
from mlirt.runtime.plan_file import plan_bytes, write_plan
from mlirt.runtime.worker_groups import ThreadChoice, WorkerGroups, thread_choice

Maker = Callable[[], Any]

# params: x, y; counts the runs that have come here in the integer x[0], waits for as many as x[1] says, and y[0] = 1
# where they have all come before patience ends
_MEET = """
declare i32 @sched_yield()
define void @meet(ptr %p, i64 %tid, i64 %nt) {
entry:
  %x = load ptr, ptr %p
  %wanted_at = getelementptr i32, ptr %x, i64 1
  %wanted = load i32, ptr %wanted_at
  %p1 = getelementptr i64, ptr %p, i64 1
  %y = load ptr, ptr %p1
  %first = icmp eq i64 %tid, 0
  br i1 %first, label %come, label %out
come:
  %before = atomicrmw add ptr %x, i32 1 seq_cst
  br label %wait
wait:
  %n = phi i64 [ 0, %come ], [ %following, %wait ]
  %following = add i64 %n, 1
  call i32 @sched_yield()
  %there = load atomic i32, ptr %x seq_cst, align 4
  %met = icmp sge i32 %there, %wanted
  %tired = icmp ugt i64 %n, 30000000
  %enough = or i1 %met, %tired
  br i1 %enough, label %done, label %wait
done:
  %found = zext i1 %met to i32
  store i32 %found, ptr %y, align 4
  br label %out
out:
  ret void
}
"""


@pytest.fixture(autouse=True)
def own_groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[ThreadChoice, WorkerGroups]]:
    found: dict[ThreadChoice, WorkerGroups] = {}
    monkeypatch.setattr(worker_groups, "_groups", found)
    yield found
    for pool in (pool for groups in found.values() for pool in groups.pools):
        pool.stop()


def engine_of(parts: Any, **options: Any) -> Engine:
    return load(plan_bytes(parts.manifest, parts.sections, parts.weights), **options)


def meeting_parts(tiny: Maker) -> Any:
    parts = tiny()
    parts.sections = {**parts.sections, "meet.o": compile_ir(_MEET)}
    manifest = parts.manifest
    manifest["kernels"].append({"name": "meet", "symbol": "meet", "object": "meet.o", "args": ["ptr", "ptr"]})
    del manifest["outputs"][1:]  # z lies in the arena: no short run
    manifest["launches"][1] = {"kernel": 2, "layer": "meet", "args": [{"buffer": 0}, {"buffer": 2}]}
    return parts


def meet(engines: Any, callers: int) -> list[int]:
    """Whether each of so many callers, which take turns with the engines, saw all others in the kernel."""
    x = aligned_empty((1000, 4), np.dtype(np.float32))
    x.view(np.int32)[...] = 0
    x.view(np.int32)[0, 1] = callers
    seen: list[int] = []

    def call(engine: Engine) -> None:
        seen.append(int(engine.run({"x": x})["y"].view(np.int32)[0, 0]))

    threads = [threading.Thread(target=call, args=(engines[number % len(engines)],)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen


def test_64_callers_on_64_simulated_processors_are_all_in_a_kernel(tiny: Maker) -> None:
    engine = engine_of(meeting_parts(tiny), threads=64, streams=64)
    before = threading.active_count()
    for _ in range(3):
        assert meet([engine], 64) == [1] * 64
    use = engine.requests
    assert use.groups is not None
    assert (use.groups.most_running, use.groups.waited, use.groups.running) == (64, 0, 0)
    assert (use.contexts.most_running, use.contexts.waited, use.woken) == (64, 0, 0)
    assert threading.active_count() <= before  # callers are the workers of groups of one


def test_workers_end_with_the_process_but_not_during_a_run(
    tiny: Maker, own_groups: dict[ThreadChoice, WorkerGroups]
) -> None:
    """A program may end while one of its daemon threads runs an engine."""
    engine = engine_of(tiny(), threads=4, streams=2)
    engine.run({"x": np.ones((2000, 4), np.float32)})
    (groups,) = own_groups.values()
    in_use = groups.take()
    assert in_use is not None
    assert not groups.stop(patience=0.05)
    assert [thread.is_alive() for thread in workers_of(groups)] == [True]
    groups.give_back(in_use)
    assert groups.stop(patience=10.0)
    assert [thread.is_alive() for thread in workers_of(groups)] == [False]


def workers_of(groups: WorkerGroups) -> list[threading.Thread]:
    """The threads of all pools, beside those that call."""
    return [thread for pool in groups.pools for thread in pool.workers]


@pytest.mark.parametrize("engines", [1, 3])
def test_groups_with_workers_run_side_by_side(tiny: Maker, engines: int) -> None:
    parts = meeting_parts(tiny)
    several = [engine_of(parts, threads=6, streams=3) for _ in range(engines)]
    for _ in range(3):  # from the second time on they are short runs
        assert meet(several, 3) == [1] * 3
    use = several[0].requests.groups
    assert use is not None
    assert (use.most_running, use.waited) == (3, 0)


def test_more_callers_than_streams_wait(tiny: Maker) -> None:
    engine = engine_of(tiny(), threads=2, streams=2)
    x = np.ones((1000, 4), np.float32)
    want = engine.run({"x": x})["y"]
    results: list[bool] = []

    def call() -> None:
        for _ in range(50):
            results.append(bool((engine.run({"x": x})["y"] == want).all()))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 400
    assert engine.requests.contexts.most_running <= 2


@pytest.mark.parametrize(("threads", "streams"), [(1, 1), (2, 1), (2, 2), (5, 2), (33, 1), (64, 1), (70, 2)])
def test_the_same_bits_with_any_threads(tiny: Maker, threads: int, streams: int) -> None:
    parts = tiny()
    x = np.random.default_rng(0).standard_normal((3001, 4), np.float32)
    want = engine_of(parts, threads=1).run({"x": x})
    got = engine_of(parts, threads=threads, streams=streams).run({"x": x})
    for name, array in want.items():
        np.testing.assert_array_equal(got[name], array)


def test_sleeping_workers_are_woken_and_counted(tiny: Maker) -> None:
    engine = engine_of(tiny(), threads=3, spin_ms=0)
    x = np.ones((1000, 4), np.float32)
    engine.run({"x": x})
    pool = next(pool for groups in worker_groups._groups.values() for pool in groups.pools)  # pyright: ignore[reportPrivateUsage]
    before = pool.woken
    for _ in range(100):
        time.sleep(1e-3)  # a worker needs a core to lie down
        engine.run({"x": x})
    assert pool.woken > before
    assert engine.requests.woken == pool.woken


def test_engines_with_the_same_choice_share_groups(tiny: Maker, own_groups: dict[ThreadChoice, WorkerGroups]) -> None:
    x = np.ones((1000, 4), np.float32)
    for choice in ((2, 1), (2, 1), (2, 2), (4, 2)):
        engine_of(tiny(), threads=choice[0], streams=choice[1]).run({"x": x})
    assert set(own_groups) == {ThreadChoice(2, 1), ThreadChoice(2, 2), ThreadChoice(4, 2)}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"threads": 0}, "threads is 0; expected a whole number from 1 to 256"),
        ({"streams": -1}, "streams is -1; expected a whole number from 1 to 256"),
        ({"threads": 257}, "threads is 257; expected a whole number from 1 to 256"),
        ({"streams": 1.5}, "streams is 1.5; expected a whole number"),
    ],
)
def test_numbers_that_make_no_sense(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        thread_choice(**options)


def test_shares_of_groups() -> None:
    assert [ThreadChoice(*both).each for both in ((8, 1), (8, 2), (8, 3), (2, 8))] == [8, 4, 2, 1]


_FORKING = """
import os, sys, threading, numpy as np, mlirt
from mlirt.runtime import worker_choice
worker_choice._RUNS = 10**9  # all runs are by groups
engine = mlirt.load(sys.argv[1], threads=4, streams=2)
x = {"x": np.ones((2000, 4), np.float32)}
want = engine.run(x)["y"].copy()
context, bound = engine.create_execution_context(), engine.bind(x)
ends = False
def work():
    while not ends:
        engine.run(x)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
for k in range(5):
    while not engine.requests.groups.running:
        pass
    child = os.fork()
    if child == 0:
        good = all((run()["y"] == want).all() for run in (
            lambda: engine.run(x), lambda: engine.submit(x).result(), lambda: context.run(x), bound,
            lambda: engine.create_execution_context().run(x)))
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
ends = True
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_has_groups_of_its_own(tiny: Maker, tmp_path: Path) -> None:
    parts = tiny()
    write_plan(tmp_path / "a.plan", parts.manifest, parts.sections, parts.weights)
    subprocess.run([sys.executable, "-W", "ignore", "-c", _FORKING, str(tmp_path / "a.plan")], check=True, timeout=100)
