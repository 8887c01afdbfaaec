"""Warnings of builds are counted, whether they are shown or not, and no pass warns past the counter."""

import ast
import warnings
from pathlib import Path

import pytest

from mlirt.counted_warnings import warn, warnings_so_far

ROOT = Path(__file__).parents[1]


def test_a_warning_counts_and_names_the_line_of_its_caller() -> None:
    before = warnings_so_far()
    with pytest.warns(UserWarning, match="too small") as caught:
        warn("too small")
    assert warnings_so_far() == before + 1
    assert caught[0].filename == __file__


def test_one_that_is_not_shown_counts_too() -> None:
    before = warnings_so_far()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warn("too small")
    assert warnings_so_far() == before + 1


@pytest.mark.parametrize("package", ["passes", "kernels", "codegen", "dialects"])
def test_rooms_that_a_plan_comes_through_warn_by_the_counter(package: str) -> None:
    """Else a plan would be kept whose second build is silent."""
    for file in (ROOT / package).rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        assert "warnings.warn" not in [ast.unparse(call.func) for call in calls], f"{file} warns uncounted"
