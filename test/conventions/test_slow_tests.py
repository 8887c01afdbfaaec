"""The list of slow tests names tests that exist, and leaves them out of a whole run alone."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from slow_tests import ROOT, slow_tests

_FILE = "test/docs/test_guides.py"


@pytest.mark.parametrize("name", sorted({one.split("[")[0] for one in slow_tests()}))
def test_a_slow_test_exists(name: str) -> None:
    file, *_, function = name.split("::")
    assert re.search(rf"^ *(async )?def {function}\b", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_most_tests_are_not_slow() -> None:
    assert 10 < len(slow_tests()) < 800


@pytest.mark.parametrize(
    ("arguments", "found"),
    [([_FILE], False), ([_FILE, "--full"], True), ([f"{_FILE}::test_guide"], True)],
)
def test_slow_tests_run_where_they_are_asked_for(arguments: list[str], found: bool) -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ("test_guide[add-an-op.md]" in done.stdout) == found, done.stdout + done.stderr
