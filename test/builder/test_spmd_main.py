"""The main object keeps its threads in step, also when each of them is held up before any of its writes."""

from __future__ import annotations

import itertools
import re
import threading
from typing import Any

import numpy as np
import pytest
from tiny_plan import tiny_parts

from mlirt.builder import spmd_main
from mlirt.runtime import cpu, worker_pool
from mlirt.runtime.engine import load
from mlirt.runtime.llvm_binding import llvm
from mlirt.runtime.plan_file import plan_bytes
from mlirt.runtime.worker_pool import WorkerPool

_RUNS, _SECONDS = 1500, 60.0


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


@pytest.mark.parametrize("threads", [2, 4])
def test_who_is_late_in_a_run_does_not_write_into_the_next_one(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = tiny_parts()
    parts.sections = {**parts.sections, "main": _hesitating_object(monkeypatch)}
    pools: dict[int, WorkerPool] = {}
    monkeypatch.setattr(cpu, "thread_count", lambda: threads)
    monkeypatch.setattr(worker_pool, "_pools", pools)
    engine: Any = load(plan_bytes(parts.manifest, parts.sections, parts.weights))
    x = np.random.default_rng(0).standard_normal((100, 4), np.float32)
    want = np.cos((2 * x + 1).reshape(-1)[::-1]).reshape(x.shape)
    worst: list[float] = []

    def run() -> None:
        for _ in range(_RUNS):
            worst.append(float(np.abs(engine.run({"x": x})["y"] - want).max()))

    # Native code that waits forever cannot be interrupted: it is left behind.
    runner = threading.Thread(target=run, daemon=True)
    runner.start()
    runner.join(_SECONDS)
    assert not runner.is_alive(), f"run {len(worst)} does not end"
    assert max(worst) < 1e-6
    for pool in pools.values():
        pool.stop()
