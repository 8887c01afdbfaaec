"""The main object keeps its threads in step, also where they are held up, and lets joined launches meet."""

from __future__ import annotations

import itertools
import re
import threading
from typing import Any

import numpy as np
import pytest
from tiny_plan import compile_ir, tiny_parts

from mlirt.builder import spmd_main
from mlirt.runtime import worker_choice, worker_groups
from mlirt.runtime.elf_symbols import defines
from mlirt.runtime.engine import load
from mlirt.runtime.llvm_binding import llvm
from mlirt.runtime.plan_file import plan_bytes
from mlirt.runtime.worker_groups import ThreadChoice, WorkerGroups

_RUNS, _SECONDS = 1500, 60.0
Groups = dict[ThreadChoice, WorkerGroups]


def stop(groups: Groups) -> None:
    for pool in (pool for one in groups.values() for pool in one.pools):
        pool.stop()


def _hesitating_object(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The main object whose threads wait before each write by which they open a row or end a run.

    Mostly for a few pauses, now and then for longer than it takes to begin the next run: the fourth power of a number
    of 12 random bits, of which the upper ones count.
    """
    count = itertools.count()

    def hesitate(write: re.Match[str]) -> str:
        number = next(count)
        return f"""
  %time{number} = call i64 @llvm.readcyclecounter()
  %mixed{number} = mul i64 %time{number}, 11400714819323198485
  %bits{number} = lshr i64 %mixed{number}, 52
  %square{number} = mul i64 %bits{number}, %bits{number}
  %fourth{number} = mul i64 %square{number}, %square{number}
  %pauses{number} = lshr i64 %fourth{number}, 34
  call void @mlirt_spin(i64 %pauses{number})
{write[1]}"""

    source: str = spmd_main._SOURCE  # pyright: ignore[reportPrivateUsage]
    head, publish, tail = re.split(r"(define internal void @publish.*?\n}}\n)", source, flags=re.DOTALL)
    slow = re.sub(r"\n(  store atomic )", hesitate, publish)
    assert next(count) == 2
    monkeypatch.setattr(spmd_main, "_SOURCE", "declare i64 @llvm.readcyclecounter()\n" + head + slow + tail)
    return spmd_main.main_object.__wrapped__(llvm().get_process_triple())


@pytest.mark.parametrize(("threads", "joined"), [(2, False), (4, False), (2, True), (4, True), (33, False)])
def test_who_is_late_in_a_run_does_not_write_into_the_next_one(
    threads: int, joined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = tiny_parts()
    parts.manifest["launches"][1]["no_barrier"] = joined
    parts.sections = {**parts.sections, "main": _hesitating_object(monkeypatch)}
    groups: Groups = {}
    monkeypatch.setattr(worker_groups, "_groups", groups)
    engine: Any = load(plan_bytes(parts.manifest, parts.sections, parts.weights), threads=threads)
    x = np.random.default_rng(0).standard_normal((400, 4), np.float32)
    want = np.cos((2 * x + 1).reshape(-1)[::-1]).reshape(x.shape)
    worst: list[float] = []

    def run() -> None:
        for _ in range(_RUNS if threads < 8 else 100):
            worst.append(float(np.abs(engine.run({"x": x})["y"] - want).max()))

    # Native code that waits forever cannot be interrupted: it is left behind.
    runner = threading.Thread(target=run, daemon=True)
    runner.start()
    runner.join(_SECONDS)
    assert not runner.is_alive(), f"run {len(worst)} does not end"
    assert max(worst) < 1e-6
    stop(groups)


# params: own word, the other one's word, y; the integer y[0] = 1 where the other word is set before patience ends
_MEET = """
define void @meet(ptr %p, i64 %tid, i64 %nt) {
entry:
  %own = load ptr, ptr %p
  %p1 = getelementptr i64, ptr %p, i64 1
  %other = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %p, i64 2
  %y = load ptr, ptr %p2
  store atomic i32 1, ptr %own seq_cst, align 4
  br label %wait
wait:
  %n = phi i64 [ 0, %entry ], [ %following, %wait ]
  %following = add i64 %n, 1
  %there = load atomic i32, ptr %other seq_cst, align 4
  %met = icmp ne i32 %there, 0
  %tired = icmp ugt i64 %n, 3000000000
  %enough = or i1 %met, %tired
  br i1 %enough, label %done, label %wait
done:
  %found = zext i1 %met to i32
  store i32 %found, ptr %y, align 4
  ret void
}
"""


def test_launches_without_a_barrier_run_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = tiny_parts()
    parts.sections = {**parts.sections, "meet.o": compile_ir(_MEET)}
    manifest = parts.manifest
    manifest["kernels"].append({"name": "meet", "symbol": "meet", "object": "meet.o", "args": ["ptr", "ptr", "ptr"]})
    clear = {**manifest["launches"][0], "args": [*manifest["launches"][0]["args"][:3], {"float": 0.0}, {"float": 0.0}]}
    words = [{"buffer": 1, "offset": 0}, {"buffer": 1, "offset": 4}]
    meetings = [
        {"kernel": 2, "layer": "one", "args": [*words, {"buffer": 2, "offset": 0}], "serial": True, "no_barrier": True},
        {"kernel": 2, "layer": "other", "args": [*words[::-1], {"buffer": 2, "offset": 4}], "serial": True},
    ]
    manifest["launches"][:2] = [clear, *meetings]
    manifest["buffers"][1]["last"] = 2
    manifest["buffers"][4].update(first=3, last=3)
    groups: Groups = {}
    monkeypatch.setattr(worker_groups, "_groups", groups)
    monkeypatch.setattr(worker_choice, "_RUNS", 1000)  # by workers: no trial of whether the caller is quicker alone
    engine: Any = load(plan_bytes(manifest, parts.sections, parts.weights), threads=2)
    for _ in range(20):
        y = engine.run({"x": np.ones((400, 4), np.float32)})["y"]
        assert y.view(np.int32)[0, :2].tolist() == [1, 1]
    stop(groups)


# params: y; the integer y[0] = how many parts the kernel has
_COUNT = """
define void @count(ptr %p, i64 %tid, i64 %nt) {
  %y = load ptr, ptr %p
  %parts = trunc i64 %nt to i32
  store i32 %parts, ptr %y, align 4
  ret void
}
"""


@pytest.mark.parametrize(("rows", "parts_wanted"), [(1, 1), (100, 1), (1000, 4)])
def test_a_launch_on_little_memory_is_one_part(rows: int, parts_wanted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = tiny_parts()
    parts.sections = {**parts.sections, "count.o": compile_ir(_COUNT)}
    parts.manifest["kernels"].append({"name": "count", "symbol": "count", "object": "count.o", "args": ["ptr"]})
    parts.manifest["launches"][1] = {"kernel": 2, "layer": "count", "args": [{"buffer": 2}]}
    groups: Groups = {}
    monkeypatch.setattr(worker_groups, "_groups", groups)
    engine: Any = load(plan_bytes(parts.manifest, parts.sections, parts.weights), threads=2)
    y = engine.run({"x": np.ones((rows, 4), np.float32)})["y"]
    assert y.view(np.int32)[0, 0] == parts_wanted
    stop(groups)


@pytest.mark.parametrize(("machine", "other"), [("x86_64", "aarch64"), ("aarch64", "x86_64")])
def test_the_main_object_is_built_for_arm_as_well(machine: str, other: str) -> None:
    """Whatever the processor here is: the linker of engines takes it for that kind alone."""
    code = spmd_main.main_object(f"{machine}-unknown-linux-gnu")
    for symbol in ("mlirt_main", "mlirt_run", "mlirt_alone", "mlirt_worker", "mlirt_lengths"):
        assert defines(code, symbol, machine)
        assert not defines(code, symbol, other)
