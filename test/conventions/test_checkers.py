"""The checkers pass, and they saw every file: a checker that looks at nothing reports no errors too."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PACKAGES = ("builder", "codegen", "dialects", "frontend", "kernels", "passes", "runtime", "serve", "tools")


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def _sources(*folders: str) -> set[Path]:
    return {path for folder in folders for path in (ROOT / folder).rglob("*.py")}


def test_ruff() -> None:
    done = _run(str(BIN / "ruff"), "check", "--output-format=concise", ".")
    assert done.returncode == 0, done.stdout


def test_ruff_saw_every_file() -> None:
    done = _run(str(BIN / "ruff"), "check", "--show-files", ".")
    seen = {Path(line).resolve() for line in done.stdout.splitlines()}
    assert _sources(*PACKAGES, "test", "examples", "bench") <= seen


@pytest.mark.parametrize("what", ["packages", "all"])
def test_pyright(what: str) -> None:
    """The whole repository takes more than twice as long as the packages, and is among the slow tests."""
    packages = [
        str(path)
        for folder in _pyright_settings()["include"]
        if folder.startswith("src/")
        for path in sorted(ROOT.glob(folder))
    ]
    chosen = packages if what == "packages" else []
    done = _run(str(BIN / "pyright"), "--pythonpath", sys.executable, "--outputjson", *chosen)
    report = json.loads(done.stdout)
    errors = [
        f"{found['file']}:{found['range']['start']['line'] + 1}: {found['message']} ({found.get('rule')})"
        for found in report["generalDiagnostics"]
        if found["severity"] == "error"
    ]
    assert not errors, "\n".join(errors)
    expected = _sources(*PACKAGES) | {
        path for folder in (".", "tensorrt") for path in (ROOT / "src" / "mlirt" / folder).glob("*.py")
    }
    expected |= _sources("test", "examples", "bench") if what == "all" else set()
    assert report["summary"]["filesAnalyzed"] >= len(expected)


def _pyright_settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pyright"]


def test_pyright_has_no_way_out() -> None:
    settings = _pyright_settings()
    links = {f"src/mlirt/{link.name}" for link in (ROOT / "src" / "mlirt").iterdir() if link.is_symlink()}
    assert links == {f"src/mlirt/{package}" for package in PACKAGES}
    assert links <= set(settings["include"])
    assert settings["typeCheckingMode"] == "strict"
    assert settings["enableTypeIgnoreComments"] is False


def test_import_boundaries() -> None:
    done = _run(str(BIN / "lint-imports"), "--no-logo", "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_import_boundaries_saw_every_file() -> None:
    import grimp

    seen = grimp.build_graph("mlirt", cache_dir=None).modules
    names = {_module_name(path) for path in _sources(*PACKAGES)}
    assert names <= seen, names - seen


def _module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("mlirt", *(parts[:-1] if parts[-1] == "__init__" else parts)))
