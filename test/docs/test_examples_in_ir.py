"""The examples that are written in the IR hold what they expect, on the CPU and in the interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlirt.tools.rt_opt import main

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.mlir"))
REGIONS = "infer-nesting,convert-loops-to-scf,convert-conditionals-to-scf"


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_example(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(path), "--run=cpu"]) == 0
    assert main([str(path), "-p", REGIONS, "--run=reference"]) == 0
    assert "error" not in capsys.readouterr().err
