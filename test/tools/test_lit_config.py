"""Tests of one's own: a folder outside the repository with a `lit.cfg.py` of two lines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from mlirt.tools import rt_update_checks
from mlirt.tools.lit_config import configured_folder, plugin_flags

CONFIG = "from mlirt.tools.lit_config import configure\nconfigure()\n"
PLUGIN = '''\
from dataclasses import dataclass

from xdsl.passes import ModulePass

raise_nothing = True


@dataclass(frozen=True)
class RenamePass(ModulePass):
    """Nothing else than a mark on the module."""

    name = "mark-module"

    def apply(self, ctx, op):
        from xdsl.dialects.builtin import UnitAttr

        for function in op.ops:
            function.attributes["marked"] = UnitAttr()
'''
TEST = """\
// RUN: rt-opt %s %plugins -p mark-module | FileCheck %s

func.func @main(%x: f32) -> f32 {
  func.return %x : f32
}
"""


def _lit(folder: Path) -> subprocess.CompletedProcess[str]:
    lit = Path(sys.executable).parent / "lit"
    return subprocess.run(
        [str(lit), "-v", str(folder)], capture_output=True, text=True, check=False, env={**os.environ, "PATH": ""}
    )


def test_a_folder_of_tests(tmp_path: Path) -> None:
    (tmp_path / "lit.cfg.py").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "mark.py").write_text(PLUGIN, encoding="utf-8")
    (tmp_path / "measure.py").write_text("raise SystemExit('a script, and no plugin')\n", encoding="utf-8")
    below = tmp_path / "below"
    below.mkdir()
    test = below / "marked.mlir"
    test.write_text(TEST, encoding="utf-8")
    (below / "gpu.mlir").write_text(f"// REQUIRES: cuda\n{TEST}", encoding="utf-8")
    assert configured_folder(test) == tmp_path
    assert plugin_flags(tmp_path) == f"--load-pass-plugin={tmp_path / 'mark.py'}"
    spaced = tmp_path / "my tests"
    spaced.mkdir()
    (spaced / "mark.py").write_bytes((tmp_path / "mark.py").read_bytes())
    assert plugin_flags(spaced) == f"--load-pass-plugin='{spaced / 'mark.py'}'"
    assert rt_update_checks.main([str(test)]) == 0
    assert "attributes {marked}" in test.read_text()
    done = _lit(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"PASS: {tmp_path.name} :: below/marked.mlir" in done.stdout
    assert sorted(path.name for path in below.iterdir()) == ["gpu.mlir", "marked.mlir"]  # nothing is written there
    test.write_text(test.read_text().replace("attributes {marked}", "attributes {other}"))
    done = _lit(tmp_path)
    assert done.returncode == 1
    assert "attributes {other}" in done.stdout


def test_other_configurations_are_not_ours(tmp_path: Path) -> None:
    assert configured_folder(tmp_path / "test.mlir") is None
    (tmp_path / "lit.cfg.py").write_text("config.name = 'other'\n", encoding="utf-8")
    assert configured_folder(tmp_path / "test.mlir") is None
