"""The experiments of examples/research: their passes act, compute the same, and their tests see it where one stops."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "examples" / "research"
EXPERIMENTS = sorted(path.parent.name for path in GALLERY.glob("*/networks.py"))
_PASS = re.compile(r"^class (\w+Pass)\(", re.MULTILINE)


def _run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program, with the tools of this Python on the path."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    environment = {**os.environ, "PATH": path}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The gallery without what tests left in it."""
    ignored = shutil.ignore_patterns("__pycache__", ".lit")
    return Path(shutil.copytree(GALLERY, tmp_path / "gallery", ignore=ignored))


def _stop(folder: Path) -> None:
    """Let the pass of an experiment do nothing any more."""
    found = [(path, _PASS.findall(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.py"))]
    ((plugin, (name,)),) = [(path, names) for path, names in found if names]
    with plugin.open("a", encoding="utf-8") as file:
        file.write(f"\n\n{name}.apply = lambda self, ctx, op: None\n")


def test_there_are_five_experiments_with_a_page_each() -> None:
    assert len(EXPERIMENTS) >= 5
    index = (GALLERY / "README.md").read_text(encoding="utf-8")
    for name in EXPERIMENTS:
        assert f"[{name}]({name}/README.md)" in index
        assert len(list((GALLERY / name).glob("*.mlir"))) >= 1


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_tests_of_an_experiment_fail_where_its_pass_stops(copied: Path, name: str) -> None:
    _stop(copied / name)
    done = _run("lit", copied / name, folder=copied)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAIL: " in done.stdout


def test_measuring_fails_where_a_pass_stops(copied: Path) -> None:
    _stop(copied / "rms_norm")
    command = (sys.executable, copied / "measure.py", "rms_norm", "--small", "--no-measure")
    done = _run(*command, folder=copied)
    assert done.returncode == 1
    assert "rms_norm: the pass does nothing in rms_small.onnx" in done.stdout
