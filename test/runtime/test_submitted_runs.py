"""Futures and coroutines: results, errors, the order of arrival, deadlines, and cancelling between launches."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tiny_plan import compile_ir

from mlirt.errors import DeadlineError, InvalidInputError, MlirtError, RunCancelledError
from mlirt.runtime.engine import Engine, load
from mlirt.runtime.plan_file import plan_bytes
from mlirt.runtime.stop_request import StopRequest
from mlirt.runtime.submitted_runs import SubmittedRuns

Maker = Callable[[], Any]

# params: y, patience; waits until the integer y[0] is set from outside, or patience ends
_WAIT = """
define void @wait(ptr %p, i64 %tid, i64 %nt) {
entry:
  %y = load ptr, ptr %p
  %first = icmp eq i64 %tid, 0
  br i1 %first, label %look, label %done
look:
  %n = phi i64 [ 0, %entry ], [ %following, %look ]
  %following = add i64 %n, 1
  %there = load atomic i32, ptr %y seq_cst, align 4
  %set = icmp ne i32 %there, 0
  %tired = icmp ugt i64 %n, 30000000000
  %enough = or i1 %set, %tired
  br i1 %enough, label %done, label %look
done:
  ret void
}
"""


def engine_of(parts: Any, **options: Any) -> Engine:
    return load(plan_bytes(parts.manifest, parts.sections, parts.weights), **options)


def waiting_parts(tiny: Maker) -> Any:
    """y = 2x + 1 in y, then a launch that waits for the caller to set y[0], then the cosines of it all in w."""
    parts = tiny()
    parts.sections = {**parts.sections, "wait.o": compile_ir(_WAIT)}
    manifest = parts.manifest
    manifest["kernels"].append({"name": "wait", "symbol": "wait", "object": "wait.o", "args": ["ptr"]})
    size = manifest["buffers"][0]["bytes"]
    manifest["buffers"].append({"kind": "output", "bytes": size})
    first, turn, weigh = manifest["launches"]
    first["args"][1] = {"buffer": 2}
    turn["args"][:2] = [{"buffer": 2}, {"buffer": 5}]
    manifest["launches"] = [first, {"kernel": 2, "layer": "wait", "args": [{"buffer": 2}]}, turn, weigh]
    manifest["buffers"][1].update(first=0, last=0)
    manifest["buffers"][4].update(first=3, last=3)
    manifest["outputs"].append({"name": "w", "dtype": "float32", "shape": ["n", 4], "buffer": 5})
    return parts


class Held:
    """A run that is in its second launch until it is let go."""

    def __init__(self, engine: Engine, rows: int) -> None:
        self.x = np.full((rows, 4), -0.5, np.float32)  # 2x + 1 = 0
        self.y, self.w = np.full((rows, 4), 7, np.float32), np.full((rows, 4), 7, np.float32)
        self.outputs = {"y": self.y, "w": self.w}
        self.feeds = {"x": self.x}
        self.engine = engine

    def wait_until_it_runs(self) -> None:
        while self.y[0, 0] != 0:
            pass

    def let_go(self) -> None:
        self.y[0, 0] = 1


@pytest.fixture(params=[{"threads": 1}, {"threads": 2}, {"threads": 4, "streams": 2}], ids=str)
def held(request: pytest.FixtureRequest, tiny: Maker) -> Held:
    parts = waiting_parts(tiny)
    for buffer in (parts.manifest["buffers"][2], parts.manifest["buffers"][5]):
        buffer["align"] = 4
    return Held(engine_of(parts, **request.param), 1000)


def test_a_run_ends_between_two_launches_when_it_is_cancelled(held: Held) -> None:
    future = held.engine.submit(held.feeds, held.outputs)
    held.wait_until_it_runs()
    assert not future.cancel()
    held.let_go()
    with pytest.raises(RunCancelledError, match="the run was cancelled, it has no outputs"):
        future.result(60)
    assert (held.w == 7).all()  # the third launch was never made
    next_one = held.engine.submit({"x": np.zeros_like(held.x)})
    np.testing.assert_allclose(next_one.result(60)["w"], np.cos(np.float32(1)), atol=1e-6)


def test_a_run_ends_between_two_launches_when_its_time_is_over(held: Held) -> None:
    faults: list[MlirtError] = []

    def work() -> None:
        try:
            held.engine.run(held.feeds, held.outputs, timeout=0.3)
        except DeadlineError as error:
            faults.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    held.wait_until_it_runs()
    thread.join(0.6)
    held.let_go()
    thread.join(60)
    assert [str(fault)[:53] for fault in faults] == ["expected the run to end within its timeout of 0.3 s, "]
    assert (held.w == 7).all()
    np.testing.assert_allclose(
        held.engine.run({"x": np.zeros_like(held.x)}, timeout=60)["w"], np.cos(np.float32(1)), atol=1e-6
    )


def test_who_waits_for_a_turn_leaves_at_the_deadline(tiny: Maker) -> None:
    held = Held(engine_of(waiting_parts(tiny), threads=2), 1000)
    for buffer in (2, 5):
        assert held.engine.plan.manifest.buffers[buffer].align == 64
    outputs = {name: np.full_like(held.x, 7) for name in ("y", "w")}
    whole = np.zeros(4016, np.float32)
    start = -(whole.ctypes.data // 4) % 16
    held.y = outputs["y"] = whole[start : start + 4000].reshape(1000, 4)
    held.y[...] = 7
    future = held.engine.submit(held.feeds, outputs)
    held.wait_until_it_runs()
    with pytest.raises(DeadlineError):
        held.engine.run(held.feeds, timeout=0.05)
    assert held.engine.requests.contexts.waited == 1
    held.let_go()
    future.result(60)


def test_a_queued_run_that_is_cancelled_never_begins(tiny: Maker) -> None:
    runs: list[int] = []
    entered, go_on = threading.Event(), threading.Event()
    queue = SubmittedRuns(1)

    def first() -> dict[str, np.ndarray]:
        entered.set()
        go_on.wait()
        return {}

    def another(number: int) -> Callable[[], dict[str, np.ndarray]]:
        return lambda: runs.append(number) or {}

    futures = [queue.submit(first, StopRequest())]
    entered.wait()
    futures += [queue.submit(another(number), StopRequest()) for number in range(5)]
    assert futures[3].cancel()
    go_on.set()
    concurrent.futures.wait(futures)
    assert runs == [0, 1, 3, 4]
    assert futures[3].cancelled()


def test_results_and_errors(tiny: Maker) -> None:
    engine = engine_of(tiny())
    x = np.ones((5, 4), np.float32)
    want = engine.run({"x": x})["y"]
    np.testing.assert_array_equal(engine.submit({"x": x}).result(60)["y"], want)
    with pytest.raises(InvalidInputError, match="input 'x' is missing"):
        engine.submit({}).result(60)
    with pytest.raises(InvalidInputError, match="timeout is -1; expected seconds"):
        engine.submit({"x": x}, timeout=-1)
    with pytest.raises(DeadlineError):
        engine.submit({"x": x}, timeout=0).result(60)


def test_coroutines(tiny: Maker) -> None:
    engine = engine_of(tiny(), streams=2)
    arrays = [np.full((5, 4), number, np.float32) for number in range(20)]

    async def all_of_them() -> list[dict[str, np.ndarray]]:
        return await asyncio.gather(*(engine.run_async({"x": x}, timeout=60) for x in arrays))

    for x, got in zip(arrays, asyncio.run(all_of_them()), strict=True):
        np.testing.assert_array_equal(got["y"], engine.run({"x": x})["y"])


def test_a_cancelled_task_ends_its_run(held: Held) -> None:
    async def cancel() -> None:
        task = asyncio.create_task(held.engine.run_async(held.feeds, held.outputs))
        await asyncio.to_thread(held.wait_until_it_runs)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    held.let_go()
    held.engine.run({"x": np.zeros_like(held.x)})
    assert (held.w == 7).all()
