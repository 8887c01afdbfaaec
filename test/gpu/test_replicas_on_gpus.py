"""Replicas of one plan on several GPUs: each process has one of its own, and answers with the engine's bits."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from dense_network import dense_network

import mlirt
from mlirt.runtime.engine import Engine
from mlirt.runtime.visible_devices import visible_devices
from mlirt.serve.replicas.pool import ReplicaPool

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def engine() -> Engine:
    built = mlirt.compile(dense_network(), "cuda")
    assert isinstance(built, Engine)
    return built


@pytest.fixture(scope="module")
def pool(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicaPool]:
    if len(visible_devices()) < 2:
        pytest.skip("needs two CUDA devices, and this machine has one")
    path = tmp_path_factory.mktemp("plans") / "dense.plan"
    engine.save(path)
    pool = ReplicaPool(str(path), 2)
    yield pool
    pool.close()


def both_gpus(pool: ReplicaPool) -> bool:
    """Whether within a minute two processes run on two GPUs."""
    until = time.monotonic() + 60
    while len(set(pool.gpus)) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    return len(set(pool.gpus)) == 2


def test_each_replica_has_a_gpu_of_its_own(pool: ReplicaPool) -> None:
    assert both_gpus(pool), pool.gpus


def test_one_that_follows_takes_the_gpu_of_the_one_that_ended(pool: ReplicaPool, engine: Engine) -> None:
    assert both_gpus(pool), pool.gpus
    before = set(pool.gpus)
    for pid in pool.pids:
        os.kill(pid, signal.SIGKILL)
        assert both_gpus(pool), pool.gpus
    assert set(pool.gpus) == before
    x = np.random.default_rng(5).uniform(-1, 1, (200, 3, 8)).astype(np.float32)
    expected = [engine.run({"x": one})["y"] for one in x]
    with ThreadPoolExecutor(8) as callers:
        answers = [one["y"] for one in callers.map(pool.run, [{"x": one} for one in x])]
    assert all(map(np.array_equal, answers, expected))
