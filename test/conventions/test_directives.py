"""filecheck ignores a misspelt directive where another one matches, so a test reads the directives of all tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lit_in_process import run_lines

TESTS = sorted(Path(__file__).parents[1].rglob("*.mlir"))
_SUFFIXES = ("", "-NEXT", "-SAME", "-LABEL", "-NOT", "-DAG", "-EMPTY", r"-COUNT-\d+", r"\{LITERAL\}")
_COMMENT = re.compile(r"//\s*(?P<word>[A-Z][A-Z0-9_]*(-[A-Z0-9_-]+)?(\{LITERAL\})?)\s*(?P<colon>:)?")


def _prefixes(path: Path) -> set[str]:
    """The prefixes that the RUN lines of a file ask filecheck for."""
    found: set[str] = set()
    for line in run_lines(path):
        if "filecheck" in line:
            asked = re.findall(r"--check-prefix(?:es)?[= ]([\w,-]+)", line)
            found |= {name for group in asked for name in group.split(",")} or {"CHECK"}
            if len(asked) < line.count("filecheck"):
                found.add("CHECK")
    return found


def _relative(path: Path) -> str:
    return str(path.relative_to(Path(__file__).parents[1]))


@pytest.mark.parametrize("path", TESTS, ids=_relative)
def test_every_directive_is_one_that_filecheck_reads(path: Path) -> None:
    prefixes = _prefixes(path)
    directive = re.compile(f"({'|'.join(map(re.escape, prefixes)) or '(?!)'})({'|'.join(_SUFFIXES)})")
    used: set[str] = set()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = _COMMENT.search(line)
        if match is None or match["word"] in ("RUN", "REQUIRES", "COM", "NOTE"):
            continue
        near = [prefix for prefix in (*prefixes, "CHECK") if match["word"].startswith(prefix)]
        if not near and match["colon"] is None:
            continue  # a sentence that starts with a word in capitals
        exact = directive.fullmatch(match["word"])
        assert exact is not None, f"line {number}: {match['word']} is no directive of {sorted(prefixes)}"
        assert match["colon"] is not None, f"line {number}: {match['word']} lacks its colon"
        used.add(exact[1])
    assert used == prefixes, f"no directive for {prefixes - used}"


@pytest.mark.parametrize("path", TESTS, ids=_relative)
def test_no_feature_that_filecheck_lacks(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "[[#" not in text, "filecheck has no numeric substitution"
    assert "--implicit-check-not" not in text, "filecheck has no --implicit-check-not"


@pytest.mark.parametrize("path", TESTS, ids=_relative)
def test_every_test_runs_something(path: Path) -> None:
    lines = run_lines(path)
    assert lines
    for line in lines:
        checked = any(word in line for word in ("filecheck", "--verify-diagnostics", "--run", "diff ", "not "))
        assert checked, f"nothing looks at the output of {line!r}"


def test_value_names_are_captured_not_counted() -> None:
    for path in TESTS:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            assert not re.search(r"//\s*[A-Z-]+:.*%\d", line), f"{path}:{number}: capture [[V:%.*]] instead of %0"
