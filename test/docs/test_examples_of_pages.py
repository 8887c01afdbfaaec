"""Every command and statement in the README and the pages is run, and prints what the page shows."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlirt.errors import CompileError
from mlirt.tools.documentation.console import Console
from mlirt.tools.documentation.living_page import count_blocks, without_numbers
from mlirt.tools.documentation.pages import LIVING

ROOT = Path(__file__).parents[2]
PAGES = [name for name in LIVING if name != "docs/architecture.md"]


@pytest.mark.parametrize("name", PAGES)
def test_page_is_current(name: str, assert_current: Callable[[str], None]) -> None:
    assert_current(name)


@pytest.mark.parametrize("name", LIVING)
def test_every_block_of_a_page_is_kept_up_to_date(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert count_blocks(text) == len(re.findall(r"^```\w+$", text, re.MULTILINE))
    assert count_blocks(text) > 0


def test_numbers_are_no_part_of_what_is_compared() -> None:
    assert without_numbers("[I] 1.5 ms,  -2e-3 and 99.9%\n") == without_numbers("[I] 20 ms, 7 and 3%")
    assert without_numbers("Latency: 1 ms") != without_numbers("Throughput: 1 ms")


def test_the_commands_of_the_readme_are_targets_of_make() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"\bmake (\w+)", text))
    assert {"demo", "test"} <= targets
    for target in targets:
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, check=True, capture_output=True)


def test_the_numbers_of_the_readme_are_those_of_the_tables() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    measured = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    ratios = re.findall(r"\b\d\.\d\d\b", readme.split("## What is measured")[1].split("## ")[0])
    assert len(ratios) >= 4
    assert [ratio for ratio in ratios if ratio not in measured] == []


def test_the_numbers_of_the_comparison_are_those_of_what_is_measured() -> None:
    text = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    measured = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    ratios = re.findall(r"\b0\.\d\d\b", text)
    assert len(ratios) >= 4
    assert [ratio for ratio in ratios if not re.search(rf"\b{re.escape(ratio)}\b", measured)] == []


def test_an_example_that_begins_to_fail_stays_out_of_the_page(tmp_path: Path) -> None:
    console = Console(tmp_path, ROOT)
    with pytest.raises(CompileError, match=r"an example fails, which it did not: ls missing"):
        console.replay("$ ls missing\n")
    assert console.replay("$ false\n(exit code 1)\n") == "$ false\n(exit code 1)\n"


def test_long_output_keeps_the_lines_that_the_page_keeps(tmp_path: Path) -> None:
    assert Console(tmp_path, ROOT).replay("$ seq 9\n0\n...\n0\n") == "$ seq 9\n1\n...\n9\n"
