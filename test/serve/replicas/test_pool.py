"""Replicas answer as the engine does; one that is killed loses no request, and another takes its place."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from mlirt.errors import DeadlineError, InvalidInputError, PlanError
from mlirt.runtime.engine import Engine
from mlirt.serve.batching.batcher import Batcher
from mlirt.serve.batching.signature import signature_of
from mlirt.serve.replicas import pool as pool_module
from mlirt.serve.replicas.messages import Message, receive, send
from mlirt.serve.replicas.pool import ReplicaPool


@pytest.fixture(scope="module")
def pool(dense_plan: Path) -> Iterator[ReplicaPool]:
    pool = ReplicaPool(str(dense_plan), 2, threads=1)
    yield pool
    pool.close()


def eventually(pool: ReplicaPool, count: int) -> bool:
    """Whether so many processes run within half a minute."""
    until = time.monotonic() + 30
    while len(pool.pids) != count and time.monotonic() < until:
        time.sleep(0.01)
    return len(pool.pids) == count


def test_messages_keep_arrays_of_any_type_and_shape() -> None:
    ours, theirs = socket.socketpair()
    arrays = {
        "empty": np.zeros((0, 3), np.float32),
        "scalar": np.array(7, np.int64),
        "half": np.arange(6, dtype=np.float32).astype(ml_dtypes.bfloat16).reshape(2, 3),
        "columns": np.arange(6, dtype=np.int16).reshape(2, 3).T,
        "large": np.arange(1 << 20, dtype=np.float32),
        **{f"x{number}": np.full(3, number % 2 == 0) for number in range(100)},
    }
    sender = threading.Thread(target=send, args=(ours, Message({"timeout": None}, arrays)))
    sender.start()
    came = receive(theirs)
    sender.join()
    assert came.words == {"timeout": None}
    assert came.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert came.arrays[name].dtype == array.dtype
        assert np.array_equal(came.arrays[name], array)
    ours.close()
    with pytest.raises(EOFError):
        receive(theirs)
    theirs.close()


def test_a_replica_answers_as_the_engine_does(pool: ReplicaPool, dense: Engine) -> None:
    x = np.random.default_rng(3).uniform(-1, 1, (5, 8)).astype(np.float32)
    assert pool.signature == signature_of(dense)
    assert np.array_equal(pool.run({"x": x})["y"], dense.run({"x": x})["y"])


def test_its_errors_are_those_of_the_engine(pool: ReplicaPool) -> None:
    with pytest.raises(InvalidInputError, match="'x'"):
        pool.run({"x": np.zeros((1, 9), np.float32)})


def test_killed_replicas_lose_nothing_and_are_replaced(pool: ReplicaPool, dense: Engine) -> None:
    x = np.random.default_rng(4).uniform(-1, 1, (600, 8)).astype(np.float32)
    expected = dense.run({"x": x})["y"]
    killed: list[int] = []
    assert eventually(pool, 2)
    before = pool.restarts
    with Batcher(pool.run, pool.signature, runs_at_once=2) as batcher, ThreadPoolExecutor(8) as callers:

        def ask(i: int) -> bool:
            if i in (150, 400):
                killed.append(pool.pids[0])
                os.kill(killed[-1], signal.SIGKILL)
            return bool(np.allclose(batcher.run({"x": x[i : i + 1]})["y"], expected[i], atol=1e-6))

        assert all(callers.map(ask, range(600)))
        assert batcher.use.requests == {"ok": 600}
    assert len(killed) == 2
    assert eventually(pool, 2)
    assert set(killed).isdisjoint(pool.pids)
    assert pool.restarts >= before + 1


def test_a_stopped_process_is_ended_at_the_timeout(pool: ReplicaPool) -> None:
    assert eventually(pool, 2)
    stopped = pool.pids
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    with pytest.raises(DeadlineError, match="its process was ended"):
        pool.run({"x": np.zeros((1, 8), np.float32)}, timeout=0.05)
    for pid in stopped:
        if pid in pool.pids:
            os.kill(pid, signal.SIGCONT)
    assert pool.run({"x": np.zeros((1, 8), np.float32)}, timeout=60)["y"].tolist() == [[0, 0, 0, 0]]


def test_a_plan_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    path = tmp_path / "bad.plan"
    path.write_bytes(b"nothing")
    with pytest.raises(PlanError):
        ReplicaPool(str(path), 1)


def test_closing_ends_the_processes(dense_plan: Path) -> None:
    pool = ReplicaPool(str(dense_plan), 1, threads=1)
    assert eventually(pool, 1)
    (pid,) = pool.pids
    pool.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_gpus_are_dealt_out_among_the_processes(
    dense_plan: Path, dense: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "visible_devices", lambda: ("4", "7"))
    pool = ReplicaPool(str(dense_plan), 3, threads=1)
    try:
        assert eventually(pool, 3)
        assert sorted(map(device_of_process, pool.pids)) == ["4", "4", "7"]
        (lonely,) = [pid for pid in pool.pids if device_of_process(pid) == "7"]
        os.kill(lonely, signal.SIGKILL)
        assert eventually(pool, 2)
        assert eventually(pool, 3)
        assert sorted(map(device_of_process, pool.pids)) == ["4", "4", "7"], "the one that follows takes its place"
        assert pool.gpus == (), "a plan for processors is on none of them"
        x = np.ones((1, 8), np.float32)
        assert np.array_equal(pool.run({"x": x})["y"], dense.run({"x": x})["y"])
    finally:
        pool.close()


def device_of_process(pid: int) -> str:
    """What it may see."""
    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return dict(one.decode().split("=", 1) for one in variables if one)["CUDA_VISIBLE_DEVICES"]
