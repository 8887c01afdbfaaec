"""Code, comments, IR and pages use the field's terms: none of the words of `words.toml` is left.

docs/glossary.md has the terms.
"""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).relative_to(ROOT)
_TABLE = HERE.parent / "words.toml"
_TEXTS = {".py", ".md", ".mlir", ".toml"}
_NAME = re.compile(r"[A-Za-z_]\w*")
_ENDS = re.compile(r"\((\^|\$)\|_\)|\^|\$")
# Names in IR: of values and symbols, and of ops.
_NAMES_IN_IR = re.compile(r"[%@]([A-Za-z_]\w*)|\b(?:trt|fused|kernel|plan|check)\.(\w+)")


@dataclass(frozen=True)
class Word:
    """A row of the table."""

    pattern: str
    standard: str
    in_identifiers: bool
    only: tuple[str, ...]
    exceptions: tuple[tuple[str, str], ...]

    def is_allowed_in(self, path: Path) -> bool:
        elsewhere = self.only and not any(fnmatch(str(path), glob) for glob in self.only)
        return bool(elsewhere) or any(fnmatch(str(path), glob) for glob, _ in self.exceptions)


def _words() -> list[Word]:
    rows = tomllib.loads((ROOT / _TABLE).read_text(encoding="utf-8"))["word"]
    assert {row["in"] for row in rows} <= {"identifiers", "text"}
    return [
        Word(
            row["pattern"],
            row["standard"],
            row["in"] == "identifiers",
            tuple(row.get("only", [])),
            tuple((glob, reason) for glob, reason in row.get("except", [])),
        )
        for row in rows
    ]


WORDS = _words()


@cache
def _texts() -> dict[Path, str]:
    """The tracked files, without this test, its table and the changelog, which says what names were before."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    paths = {Path(line) for line in listed.splitlines()} - {HERE, _TABLE, Path("CHANGELOG.md")}
    return {
        path: (ROOT / path).read_text(encoding="utf-8")
        for path in sorted(paths)
        if path.suffix in _TEXTS and (ROOT / path).is_file() and not (ROOT / path).is_symlink()
    }


@cache
def _in_one_line() -> dict[Path, str]:
    return {path: " ".join(text.split()) for path, text in _texts().items()}


def identifiers_in(path: Path, text: str) -> set[str]:
    """Names in a file: of Python, of its strings that are one name, of IR, and of the file itself."""
    found = {path.stem}
    if path.suffix != ".py":
        return found | {name for match in _NAMES_IN_IR.finditer(text) for name in match.groups() if name}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            found.add(token.string)
        elif token.type == tokenize.STRING:
            inner = token.string.strip("rbfRBF").strip("\"'")
            found |= {inner} if _NAME.fullmatch(inner) else set[str]()
    return found


@cache
def _identifiers(path: Path) -> set[str]:
    return identifiers_in(path, _texts()[path])


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.pattern)
def test_word_is_not_used(word: Word) -> None:
    pattern = re.compile(word.pattern)
    if word.in_identifiers:  # files are taken apart only where the word may be
        anywhere = re.compile(_ENDS.sub("", word.pattern))
        near = [path for path, text in _texts().items() if anywhere.search(text) or anywhere.search(path.stem)]
        found = {path for path in near if any(map(pattern.search, _identifiers(path)))}
    else:
        found = {path for path, text in _in_one_line().items() if pattern.search(text)}
    left = sorted(str(path) for path in found if not word.is_allowed_in(path))
    assert not left, f"say {word.standard!r}: {left[:20]}"


def test_table_can_find_something() -> None:
    text = 'def woven(x):\n    "wishes"\n    return f"{x}"  # layers of bytes\n'
    assert identifiers_in(Path("a/cpu_turned.py"), text) >= {"cpu_turned", "woven", "wishes", "x"}
    assert identifiers_in(Path("a.mlir"), "%woven = kernel.post %x") >= {"woven", "post", "x"}
    assert "bytes" not in identifiers_in(Path("a.py"), text)


def test_exceptions_have_a_reason_and_are_needed() -> None:
    for word in WORDS:
        assert all(reason for _, reason in word.exceptions), word.pattern
        for glob in (*word.only, *(glob for glob, _ in word.exceptions)):
            assert any(fnmatch(str(path), glob) for path in _texts()), f"{glob}: no such file"
