"""Demand 7: memory does not grow, neither with runs over many shapes nor with engines that come and go.

Each case is measured in a process of its own: what other tests left in the allocator of this one changes its size
by more than what is looked for.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_plan import Parts

from mlirt.runtime.plan_file import write_plan

ALLOWED = 3 << 20
"""Bytes: 450 shapes may leave behind 7 KiB each at most, 60 engines 52 KiB."""

SHAPE_CACHE = {**os.environ, "MLIRT_SHAPE_CACHE_MB": "1"}
"""Programs of shapes are kept up to a limit, by default of 64 MiB: a growth up to it is none that goes on."""

_COMMON = """
import gc, sys
from pathlib import Path
import numpy as np
from mlirt.runtime.engine import load

def resident():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

def run(engine, counts):
    for count in counts:
        engine.run({"x": np.ones((count, 4), np.float32)})

engine = load(sys.argv[1], threads=1)
"""

_CASES = {
    "runs over many shapes": """
run(engine, range(1, 120))
before = resident()
run(engine, range(120, 1020, 2))
""",
    "runs over shapes that come again": """
run(engine, range(1, 8))
before = resident()
for _ in range(500):
    run(engine, range(1, 8))
""",
    "engines that come and go": """
for _ in range(10):
    run(load(sys.argv[1], threads=1), range(1, 4))
before = resident()
for _ in range(60):
    run(load(sys.argv[1], threads=1), range(1, 4))
""",
    "contexts that come and go": """
def use():
    for _ in range(20):
        run(engine.create_execution_context(), (3,))
        run(load(sys.argv[1], threads=1), (3,))
use()
before = resident()
for _ in range(4):
    use()
""",
}


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("case", _CASES)
def test_memory_does_not_grow(case: str, tiny: Callable[[], Parts], tmp_path: Path) -> None:
    assert growth(_CASES[case], tiny(), tmp_path) < ALLOWED


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_what_is_kept_is_seen(tiny: Callable[[], Parts], tmp_path: Path) -> None:
    kept = """
before = resident()
kept = [load(sys.argv[1], threads=1) for _ in range(300)]
for one in kept:
    run(one, (3,))
"""
    assert growth(kept, tiny(), tmp_path) > ALLOWED


def growth(case: str, parts: Parts, folder: Path) -> int:
    """The bytes by which a process that runs ``case`` is larger at its end than at its ``before``."""
    write_plan(folder / "a.plan", parts.manifest, parts.sections, parts.weights)
    script = f"{_COMMON}{case}print(resident() - before)"
    command = [sys.executable, "-W", "ignore", "-c", script, str(folder / "a.plan")]
    return int(subprocess.run(command, check=True, timeout=120, env=SHAPE_CACHE, capture_output=True, text=True).stdout)
