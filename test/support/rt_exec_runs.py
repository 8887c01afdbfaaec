"""Runs of rt-exec inside the process, on a plan with one small kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_plan import tiny_parts

from mlirt.runtime.plan_file import write_plan
from mlirt.tools import rt_exec

QUICK = ["--warmUp=1", "--duration=0", "--iterations=20"]


def tiny_plan_file(folder: Path) -> str:
    """The path of a plan with the input x [n, 4] and the output y."""
    parts = tiny_parts()
    write_plan(folder / "a.plan", parts.manifest, parts.sections, parts.weights)
    return str(folder / "a.plan")


def run(*arguments: str) -> int:
    """The exit code of rt-exec with these arguments."""
    return rt_exec.main(arguments)


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on standard error of a run that fails."""
    assert run(*arguments) == 1
    out, err = capsys.readouterr()
    assert out.rstrip().split("\n")[-1].startswith("&&&& FAILED mlirt.rt_exec [mlirt v")
    assert err.count("\n") == 1, err
    return err


__all__ = ["QUICK", "failure", "run", "tiny_plan_file"]
