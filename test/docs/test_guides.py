"""The guides are followed word by word, each in a copy of the repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDES = ("write-a-fusion-pass.md", "add-a-tactic.md", "add-an-op.md", "add-an-instruction.md", "write-a-plugin.md")
_BLOCK = re.compile(r"(?:^`(?P<file>[^`\n]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_COPIED = (
    "dialects",
    "kernels",
    "passes",
    "codegen",
    "builder",
    "runtime",
    "frontend",
    "serve",
    "tools",
    "src",
    "test",
    "pyproject.toml",
)


@dataclass(frozen=True)
class Step:
    """One block of the page; `file` is the path in the line above it."""

    kind: str
    body: str
    file: str | None


def steps(page: str) -> list[Step]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [Step(match["kind"], match["body"], match["file"]) for match in _BLOCK.finditer(text)]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The repository without what was built in it."""
    for name in _COPIED:
        source, target = ROOT / name, tmp_path / name
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(source, target)
    return tmp_path


@pytest.mark.parametrize("page", GUIDES)
def test_guide(copy: Path, page: str) -> None:
    assert steps(page)
    for step in steps(page):
        if step.kind == "console":
            _follow(step.body, copy)
        elif step.kind == "diff":
            assert step.file is not None
            _patch(copy / step.file, step.body)
        else:
            assert step.file is not None, f"the block {step.body[:60]!r} has no file name above it"
            assert not (copy / step.file).exists(), f"{step.file} exists already"
            (copy / step.file).write_text(step.body, encoding="utf-8")
    assert _changed_pages(copy) == _pages_named_in(page), f"{page} names the pages that follow from what it changes"
    written = [step.file for step in steps(page) if step.file and "/" in step.file and step.file.endswith(".py")]
    if written:  # others are scripts of the reader, outside the repository
        done = _run(f"ruff check {' '.join(written)}", copy)
        assert done.returncode == 0, done.stdout


def _changed_pages(copy: Path) -> set[str]:
    """The documents that are not what they would be after the guide; tests of the repository compare them."""
    script = (
        "import json; from mlirt.tools.documentation.pages import GENERATED;"
        "print(json.dumps({name: text() for name, text in GENERATED.items()}))"
    )
    done = _run(f'{sys.executable} -c "{script}"', copy)
    assert done.returncode == 0, done.stderr
    pages: dict[str, str] = json.loads(done.stdout)
    changed = {name for name, text in pages.items() if (ROOT / name).read_text(encoding="utf-8") != text}
    cleanup = "rt-translate --print-pipeline --to cleanup"
    pipeline = _run(cleanup, copy).stdout
    shown = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")
    return changed if f"$ {cleanup}\n{pipeline}" in shown else {*changed, "docs/tools.md"}


def _pages_named_in(page: str) -> set[str]:
    """What a guide says that `make docs` has to write."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return {name for names in re.findall(r'make docs PAGES="?([^"`]+)', text) for name in names.split()}


def _patch(path: Path, difference: str) -> None:
    lines = difference.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path.name} does not have once:\n{old}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def _follow(session: str, folder: Path) -> None:
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        done = _run(command, folder)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        printed = {_without_numbers(line) for line in (done.stdout + done.stderr).splitlines()}
        for line in expected.splitlines():
            assert line == "..." or _without_numbers(line) in printed, (
                f"{command} did not print {line!r}:\n{done.stdout}"
            )


def _run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command with the tools of this Python and the packages of the copy."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), environment.get("PATH", "")))
    return subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


def _without_numbers(line: str) -> str:
    """Numbers and the width of columns differ from run to run; pytest adds minutes to what takes longer than one."""
    line = re.sub(r" \(\d+:\d\d:\d\d\)$", "", line)
    return re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)?", "0", line)).strip()
