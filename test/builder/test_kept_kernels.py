"""A build that ends early keeps each kernel that was finished, whatever ends it; entries are counted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from interrupted_process import restore_interrupts

_TOTAL, _DONE = 5, 3
_BUILD = """
import os, sys, time
from mlirt.builder.host import cpu_target
from mlirt.builder.numba_cpu import compile_kernels

TEXT = '''from mlirt.builder.numba_cpu_intrinsics import float32, float32_pointer

def fill_{0}(params, worker, workers):
    float32_pointer(params[0])[0] = float32({0})
'''

def report(text, done, total):
    print(done, flush=True)
    if done == int(sys.argv[2]):
        os.kill(os.getpid(), int(sys.argv[3]))
        time.sleep(60)

sources = {f"fill_{k}": TEXT.format(k) for k in range(int(sys.argv[1]))}
assert list(compile_kernels(sources, cpu_target(), report)) == list(sources)
"""


def _run(cache: Path, end_at: int, number: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _BUILD, str(_TOTAL), str(end_at), str(number)],
        env=dict(os.environ, MLIRT_CACHE=str(cache), MLIRT_JOBS="1"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=restore_interrupts,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda one: one.name)
def test_an_ended_build_keeps_what_was_finished(number: signal.Signals, tmp_path: Path) -> None:
    ended = _run(tmp_path, _DONE, number)
    assert ended.returncode == -number, ended.stderr
    entries = sorted(tmp_path.rglob("*.code"))
    assert len(entries) == _DONE
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == entries  # and nothing half written
    goes_on = _run(tmp_path, -1, 0)
    assert goes_on.returncode == 0, goes_on.stderr
    assert goes_on.stdout.split() == [str(done) for done in range(_DONE, _TOTAL + 1)]  # the rest alone is compiled
    assert len(list(tmp_path.rglob("*.code"))) == _TOTAL
