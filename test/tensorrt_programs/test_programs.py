"""Programs that a user of TensorRT writes from its documentation, run unchanged: each computes what NumPy says."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parent / "programs"
_FAILED = re.compile(r"^FAILED (\w+)\n(.*?)^END \1$", re.MULTILINE | re.DOTALL)


def _programs() -> list[tuple[str, str]]:
    """The public functions of each file but the shared one; each is a program of its own."""
    found: list[tuple[str, str]] = []
    for path in sorted(_FOLDER.glob("*.py")):
        if path.stem == "engine_runs":
            continue
        functions = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
        found += [(path.stem, name) for name in functions if not name.startswith("_")]
    return found


@cache
def _outcomes(file: str) -> tuple[frozenset[str], dict[str, str], str]:
    """The programs of a file that passed, why the others did not, and all that was printed."""
    command = [sys.executable, "-W", "ignore", "-m", "mlirt.as_tensorrt", str(_FOLDER / f"{file}.py")]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)
    passed = re.findall(r"^PASSED (\w+)$", done.stdout, re.MULTILINE)
    return frozenset(passed), dict(_FAILED.findall(done.stdout)), done.stdout + done.stderr


def test_there_are_many_programs() -> None:
    assert len(_programs()) >= 100


@pytest.mark.parametrize(("file", "program"), _programs(), ids=lambda part: str(part))
def test_program(file: str, program: str) -> None:
    passed, failed, text = _outcomes(file)
    assert program in passed, failed.get(program, text)
