"""A child that is forked while other threads run an engine can run it, too."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_plan import Parts

from mlirt.runtime.plan_file import write_plan

_SCRIPT = """
import os, sys, threading, numpy as np, mlirt
engine = mlirt.load(sys.argv[1])
x = {"x": np.ones((3, 4), np.float32)}
want = engine.run(x)["y"].copy()
ends = False
def work():
    while not ends:
        engine.run(x)
threading.Thread(target=work, daemon=True).start()
for k in range(10):
    while not engine.context.lock.locked():
        pass
    child = os.fork()
    if child == 0:
        good = (engine.run(x)["y"] == want).all()
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
ends = True
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_does_not_wait_for_threads_that_it_has_not(tiny: Callable[[], Parts], tmp_path: Path) -> None:
    parts = tiny()
    write_plan(tmp_path / "a.plan", parts.manifest, parts.sections, parts.weights)
    subprocess.run([sys.executable, "-W", "ignore", "-c", _SCRIPT, str(tmp_path / "a.plan")], check=True, timeout=60)
