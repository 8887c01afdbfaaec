"""Demand 7: memory does not grow, neither with runs over many shapes nor with engines that come and go."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlirt.runtime.engine import Engine, load
from mlirt.runtime.plan_file import plan_bytes

Maker = Callable[[], Any]
ALLOWED = 3 << 20
"""Bytes: 200 runs may leave behind 16 KiB each at most, 60 engines 52 KiB."""


def resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_runs_over_many_shapes(tiny: Maker) -> None:
    engine = _engine(tiny())
    _run(engine, range(1, 120))
    before = resident()
    _run(engine, range(121, 520, 2))
    assert resident() - before < ALLOWED


def _engine(parts: Any) -> Engine:
    return load(plan_bytes(parts.manifest, parts.sections, parts.weights), threads=1)


def _run(engine: Engine, counts: range) -> None:
    for count in counts:
        engine.run({"x": np.ones((count, 4), np.float32)})


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_engines_that_come_and_go(tiny: Maker, tmp_path: Path) -> None:
    path = tmp_path / "a.plan"
    _engine(tiny()).save(path)
    for _ in range(10):
        _run(load(path, threads=1), range(1, 4))
    before = resident()
    for _ in range(60):
        _run(load(path, threads=1), range(1, 4))
    assert resident() - before < ALLOWED
