"""An experiment with a pass in a file, as bench/research.py does it for a new user, on one small network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench" / "research.py"


def test_two_files_are_an_experiment(tmp_path: Path) -> None:
    made = "import research, sys; sys.stdout.buffer.write(research.network_of_swishes(0).SerializeToString())"
    run = subprocess.run([sys.executable, "-c", made], cwd=BENCH.parent, capture_output=True, check=True)
    (tmp_path / "one.onnx").write_bytes(run.stdout)
    command = [sys.executable, str(BENCH), "one.onnx", "--seconds=0.2", "--folder=experiment"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("applied: ") == 2
    assert "PASS: tests :: swish.mlir" in done.stdout
    assert "in all, 1 models; the pass has 18 lines" in done.stdout
