"""What the repository says is about itself: no path of somebody's machine, no empty names, no work left in comments."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_TEXTS = {".py", ".md", ".mlir", ".toml", ".cfg", ".txt", ""}
_VAGUE = {"utils", "helpers", "common", "misc", "util", "helper"}


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    files = [ROOT / line for line in listed.splitlines()]
    return [path for path in files if path.suffix in _TEXTS and path.is_file() and not path.is_symlink()]


FILES = _tracked()


def test_there_are_files() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    assert FILES


def test_no_machine_paths() -> None:
    machine = re.compile(r"(?<![\w.])/(home|Users|root|work" + r")/\w")
    found = [path for path in FILES if machine.search(path.read_text(encoding="utf-8"))]
    assert not found


def test_files_are_named_for_what_they_hold() -> None:
    assert not [path for path in FILES if path.stem in _VAGUE]


def test_no_bare_ignores() -> None:
    ignore = re.compile(r"#\s*type:\s*" + r"ignore|#\s*pyright:\s*ignore(?!\[)|#\s*noqa(?!:)")
    assert not [path for path in FILES if path.suffix == ".py" and ignore.search(path.read_text(encoding="utf-8"))]


def test_links_lead_to_the_packages() -> None:
    for link in (ROOT / "src" / "mlirt").iterdir():
        if link.is_symlink():
            assert link.readlink() == Path("../..") / link.name
            assert (link / "__init__.py").is_file()
