"""The suite as users run it, `lit`, every tool in a process of its own: one file in twelve, as pytest runs all of them.

`make lit` does so for all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def test_lit() -> None:
    workers = str(os.cpu_count() or 1)
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "test").rglob("*.mlir"))[::12]
    assert len(files) > 20
    done = subprocess.run(
        [str(BIN / "lit"), "--workers", workers, *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Total Discovered Tests: {len(files)}\n" in done.stdout
