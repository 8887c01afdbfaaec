"""The page of thirty demands: each that is answered names a test that exists, each other one says what is missing."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"\| (\d+) \| (.+?) \| (yes|partly|no) \| (.+?) \| (.*?) ?\|")
TEST = re.compile(r"`(test/[\w/]+\.py)::(\w+)`")
ROWS = [
    match.groups() for match in map(ROW.fullmatch, (ROOT / "docs/what-users-ask.md").read_text().splitlines()) if match
]


def test_there_are_thirty() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, 31))


@pytest.mark.parametrize(("number", "answer", "tests"), [(row[0], row[2], row[4]) for row in ROWS])
def test_a_test_shows_what_is_answered(number: str, answer: str, tests: str) -> None:
    named = TEST.findall(tests)
    assert named or answer == "no", f"demand {number} names no test"
    for path, name in named:
        tree = ast.parse((ROOT / path).read_text())
        assert name in {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}, f"{path}::{name}"
