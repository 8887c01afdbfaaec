"""The suite as users run it: `lit test/`, every tool in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def test_lit() -> None:
    workers = str(os.cpu_count() or 1)
    done = subprocess.run(
        [str(BIN / "lit"), "--quiet", "--workers", workers, "test"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
