"""docs/tensorrt-features.md has a row for each number that code and tests cite, and names the tests that cite it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mlirt.tools.documentation.feature_page import ANSWERS, PAGE, answers_of, cited_in, feature_page, rows_of
from mlirt.tools.documentation.pages import fresh_text

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "builder",
    "codegen",
    "dialects",
    "frontend",
    "kernels",
    "passes",
    "runtime",
    "src",
    "tools",
    "test",
    "bench",
    "examples",
)
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
ROWS = rows_of(TEXT)
# Their citations are examples.
_EXAMPLES = {"feature_page.py", "test_feature_page.py", "test_generated_pages.py"}


def test_page_is_current() -> None:
    assert fresh_text(PAGE, ROOT) == TEXT, f"{PAGE} is out of date: make docs PAGES={PAGE}"


def test_every_row_is_read_and_has_an_answer() -> None:
    assert len(ROWS) == len(set(ROWS)) == TEXT.count('<a id="')
    assert set(answers_of(TEXT).values()) <= set(ANSWERS)
    assert list(ROWS) == sorted(ROWS, key=_order), "rows are sorted by number"


def _order(row: str) -> tuple[int, int, str]:
    match = re.fullmatch(r"(\d+)\.(\d+)(\w?)", row)
    assert match is not None
    return int(match[1]), int(match[2]), match[3]


@pytest.mark.parametrize("package", PACKAGES)
def test_rows_that_are_cited_exist(package: str) -> None:
    sources = [path for path in (ROOT / package).rglob("*.py") if path.name not in _EXAMPLES and not path.is_symlink()]
    assert sources
    unknown = {
        f"{path.relative_to(ROOT)}: {row}"
        for path in sources
        for row in cited_in(path.read_text(encoding="utf-8"), ROWS) - set(ROWS)
    }
    assert not unknown


def test_sections_that_are_cited_exist() -> None:
    cited = re.compile(r"\(sections? (\d+)(?:, (\d+))*(?: (?:to|and) (\d+))?\)")
    sections = {row.partition(".")[0] for row in ROWS}
    for path in (ROOT / "test").rglob("*.py"):
        for match in cited.finditer(path.read_text(encoding="utf-8")):
            assert {number for number in match.groups() if number} <= sections, path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(feature 9.18)", {"9.18"}),
        ("Rows 1.1a, 1.2 and\n1.3", {"1.1a", "1.2a", "1.2b", "1.3"}),
        ("features 1.1 to 1.2a)", {"1.1a", "1.1b", "1.2a"}),
        ("features 1.1a-1.2b", {"1.1a", "1.1b", "1.2a", "1.2b"}),
        ("def test_scales_9_18(scale: float)", {"9.18"}),
        ("def test_kinds_1_1() -> None", {"1.1a", "1.1b"}),
        ("row 1.4", {"1.4"}),
        ("row 2 of 1.3, 1.3 rows, and versions 1.3", set[str]()),
    ],
)
def test_citations(text: str, expected: set[str]) -> None:
    assert cited_in(text, ("1.1a", "1.1b", "1.2a", "1.2b", "1.3", "9.18")) == expected


def test_cells_and_counts_are_filled_in(tmp_path: Path) -> None:
    (tmp_path / "test" / "docs").mkdir(parents=True)
    (tmp_path / "test" / "test_a.py").write_text('"""What a does (row 1.1)."""', encoding="utf-8")
    page = (
        "<!-- counts -->\n<!-- end of counts -->\n## 1 Some layers\n"
        '| <a id="1.1a"></a>1.1a | Relu | yes | - |\n| <a id="1.2"></a>1.2 | Tanh | partly: slow | [gone](gone.py) |\n'
    )
    filled = feature_page(page, tmp_path)
    assert "| [1 Some layers](#1-some-layers) | 1 | 1 | 0 | 0 | 1 |" in filled
    assert '| <a id="1.1a"></a>1.1a | Relu | yes | [test_a](../test/test_a.py) |' in filled
    assert '| <a id="1.2"></a>1.2 | Tanh | partly: slow | - |' in filled
    assert feature_page(filled, tmp_path) == filled
