"""xDSL's own tools know our dialects and passes, because mlirt is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mlirt.dialects.registry import dialect_names
from mlirt.passes import registry
from mlirt.universe import MLIRT_UNIVERSE

XDSL_OPT = Path(sys.executable).parent / "xdsl-opt"


def test_universe_holds_every_dialect_and_pass_once() -> None:
    assert set(MLIRT_UNIVERSE.all_dialects) == set(dialect_names())
    assert set(MLIRT_UNIVERSE.all_passes) == set(registry.pass_names()) - set(registry.stock_passes())


def test_every_dialect_loads_under_its_name() -> None:
    for name, factory in MLIRT_UNIVERSE.all_dialects.items():
        dialect = factory()
        assert dialect.name == name
        assert list(dialect.operations)


def test_stock_xdsl_opt_runs_our_passes_on_our_dialects(tmp_path: Path) -> None:
    path = tmp_path / "network.mlir"
    path.write_text("%x = check.input {value = dense<1.0> : tensor<2xf32>} : tensor<2xf32>\n", encoding="utf-8")
    command = [str(XDSL_OPT), str(path), "-p", "verify-dominance"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "check.input" in done.stdout
